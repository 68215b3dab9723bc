// Each single change that somebody makes to a store by hand is found by `verify`.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>

#include "cli/program.hpp"

namespace holdfast::cli_tests {
namespace {

struct Tampering {
  const char* name;
  const char* sql;   ///< DONE, WAITING, DELAYED, FAILED stand for the ids of runs
  const char* says;  ///< part of the violation; ids likewise
};

class Verify : public ::testing::TestWithParam<Tampering> {
 protected:
  /// One store for all: a run that was approved and completed, one that waits, one that is delayed,
  /// one that failed.
  static void SetUpTestSuite() {
    cli_ = std::make_unique<Folder>();
    const Folder& cli = *cli_;
    cli.write_agent(true);
    ids_["DONE"] = cli({"enqueue", "pay", "--input", "x", "--label", "team=ops"}).lines().at(0);
    cli({"worker", "--drain"});
    cli({"approve", ids_["DONE"]});
    ids_["WAITING"] = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
    cli({"worker", "--drain"});
    ids_["DELAYED"] = cli({"enqueue", "pay", "--input", "x", "--delay", "1d"}).lines().at(0);
    cli.write("turns.json", R"([{"errors": [{"status": 400, "body": "no"}], "reply": "x"}])");
    ids_["FAILED"] = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
    cli({"worker", "--drain"});
    ASSERT_EQ(cli({"backup", "sound.db"}).status, 0);
  }
  static void TearDownTestSuite() { cli_.reset(); }

  static std::string with_ids(std::string text) {
    for (const auto& [name, id] : ids_) {
      for (std::size_t at = 0; (at = text.find(name, at)) != text.npos;) {
        text.replace(at, name.size(), id);
      }
    }
    return text;
  }

  static Result verify(const std::string& sql) {
    const auto file = cli_->path() / "changed.db";
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix);
    fs::copy_file(cli_->path() / "sound.db", file);
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(db);
    EXPECT_EQ(sqlite3_total_changes(db) > 0, !sql.empty()) << sql;
    sqlite3_close(db);
    return (*cli_)({"--store", "sqlite:changed.db", "verify", "--json"});
  }

  static std::string violations(const Result& result) {
    std::string text;
    for (const auto& finding : result.json()) {
      if (finding["grade"] == "bad") text += finding["text"].get<std::string>() + "\n";
    }
    return text;
  }

  static std::unique_ptr<Folder> cli_;
  static std::map<std::string, std::string> ids_;
};
std::unique_ptr<Folder> Verify::cli_;
std::map<std::string, std::string> Verify::ids_;

TEST_F(Verify, FindsNothingWhereNothingWasChanged) {
  const auto result = verify("");
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_EQ(violations(result), "");
}

TEST_P(Verify, FindsIt) {
  const auto result = verify(with_ids(GetParam().sql));
  EXPECT_EQ(result.status, 1);
  const auto found = violations(result);
  EXPECT_NE(found.find(with_ids(GetParam().says)), std::string::npos) << found;
}

#define HOLDFAST_RUN_OF(name) "(SELECT row FROM runs WHERE id = '" name "')"
#define HOLDFAST_LAST_EVENT_OF(name) "(SELECT last_position FROM runs WHERE id = '" name "')"

constexpr Tampering kTamperings[] = {
    {"RunDeleted", "DELETE FROM runs WHERE id = 'DONE'", "the run of row 1 is missing: "},
    {"EventOfNoRun",
     "INSERT INTO events SELECT max(position) + 1, 77, 1, 'queued', 0, 0, 0, '{}' FROM events",
     "the run of row 77 is missing: 1 of its events"},
    {"LabelOfNoRun", "INSERT INTO labels VALUES (77, 'team', 'x')",
     "the run of row 77 is missing: its label team"},
    {"RequestOfNoRun", "INSERT INTO run_data (run, input, content_digest) VALUES (77, '1', 'x')",
     "the run of row 77 is missing: its request"},
    {"RequestDeleted", "DELETE FROM run_data WHERE run = " HOLDFAST_RUN_OF("DONE"),
     "run DONE: its request (run_data) is missing"},
    {"EventDeleted", "DELETE FROM events WHERE sequence = 3 AND run = " HOLDFAST_RUN_OF("DONE"),
     "run DONE: event 4 (tool) does not stand behind event 3"},
    {"LastEventDeleted", "DELETE FROM events WHERE position = " HOLDFAST_LAST_EVENT_OF("DONE"),
     "run DONE: its newest event"},
    {"EventNotInTheChain",
     "INSERT INTO events SELECT max(position) + 1, " HOLDFAST_RUN_OF(
         "DONE") ", 1, 'queued', 0, 0, 0, '{}' FROM events",
     "run DONE: "},
    {"EventOfAnotherRun",
     "UPDATE events SET run = " HOLDFAST_RUN_OF(
         "WAITING") " WHERE sequence = 2 AND run = " HOLDFAST_RUN_OF("DONE"),
     "run DONE: event 3 (model) does not stand behind event 2"},
    {"PayloadNotJson",
     "UPDATE events SET payload = '{' WHERE sequence = 3 AND run = " HOLDFAST_RUN_OF("DONE"),
     "run DONE: the payload of event 3 (model) is not JSON"},
    {"InputNotJson", "UPDATE run_data SET input = '{' WHERE run = " HOLDFAST_RUN_OF("DONE"),
     "run DONE: its input is not JSON"},
    {"ErrorNotJson", "UPDATE runs SET error = '{' WHERE id = 'FAILED'",
     "run FAILED: its error is not JSON"},
    {"WaitNotJson", "UPDATE runs SET waiting = '{' WHERE id = 'WAITING'",
     "run WAITING: what it waits for is not JSON"},
    {"Answer", "UPDATE run_data SET answer = '\"no\"' WHERE run = " HOLDFAST_RUN_OF("DONE"),
     "run DONE: its answer is \"no\", its completed event says \"paid\""},
    {"AnswerRemoved", "UPDATE run_data SET answer = NULL WHERE run = " HOLDFAST_RUN_OF("DONE"),
     "run DONE: its answer is none"},
    {"AnswerAdded", "UPDATE run_data SET answer = '1' WHERE run = " HOLDFAST_RUN_OF("FAILED"),
     "run FAILED: it has an answer"},
    {"TotalTokens", "UPDATE runs SET total_tokens = total_tokens + 1 WHERE id = 'DONE'",
     "run DONE: its total_tokens is "},
    {"PromptTokens", "UPDATE runs SET prompt_tokens = prompt_tokens + 1 WHERE id = 'DONE'",
     "run DONE: its prompt_tokens is "},
    {"Cost", "UPDATE runs SET cost_usd = 7 WHERE id = 'DONE'", "run DONE: its cost_usd is 7"},
    {"Agent", "UPDATE runs SET agent = 'other' WHERE id = 'DONE'",
     "run DONE: its agent is \"other\", its events say \"pay\""},
    {"Priority", "UPDATE runs SET priority = 9 WHERE id = 'DELAYED'",
     "run DELAYED: its priority is 9, its events say 0"},
    {"OriginOfADoneRun", "UPDATE runs SET origin = 'interactive' WHERE id = 'DONE'",
     "run DONE: its origin is interactive, its events say queued"},
    {"OriginUnknown", "UPDATE runs SET origin = 'space' WHERE id = 'DELAYED'",
     "run DELAYED: its origin is space, its events say queued (or a newer holdfast wrote it)"},
    {"Queue", "UPDATE runs SET queue = 'slow' WHERE id = 'FAILED'",
     "run FAILED: its queue is \"slow\", its events say \"default\""},
    {"ErrorRemoved", "UPDATE runs SET error = NULL WHERE id = 'FAILED'",
     "run FAILED: its error is none, its events say client_error"},
    {"ErrorChanged",
     "UPDATE runs SET error = json_set(error, '$.message', 'fine') WHERE id = 'FAILED'",
     "run FAILED: its error is client_error"},
    {"StartRemoved", "UPDATE runs SET started_at = NULL WHERE id = 'DONE'",
     "run DONE: its started_at is none"},
    {"DueTime", "UPDATE runs SET available_at = 1 WHERE id = 'DELAYED'",
     "run DELAYED: its available_at is 1970"},
    {"PolicyRemoved", "UPDATE runs SET policy = NULL WHERE id = 'DONE'",
     "run DONE: it was claimed and has no policy"},
    {"PolicyOfNobody", "DELETE FROM policies", "run DONE: its policy, number 1, is not stored"},
    {"StatusUnknown", "UPDATE runs SET status = 'zzz' WHERE id = 'DELAYED'",
     "run DELAYED: its status is zzz, its events say queued (or a newer holdfast wrote it)"},
    {"Status", "UPDATE runs SET status = 'failed' WHERE id = 'DONE'",
     "run DONE: its status is failed, its events say completed"},
    {"PendingTurn",
     "UPDATE runs SET waiting = json_set(waiting, '$.turn', 'x') WHERE id = 'WAITING'",
     "run WAITING: its pending turn is x"},
    {"WaitDeadline", "UPDATE runs SET wait_deadline = 5 WHERE id = 'WAITING'",
     "run WAITING: the deadline that reapers look for"},
    {"LeaseKey", "UPDATE runs SET lease_until = 5 WHERE id = 'WAITING'",
     "run WAITING: no reaper would find its lease"},
    {"Counts", "UPDATE counts SET number = number + 5 WHERE status = 'completed'",
     "of runs that are completed (completed) the store counts 6, there are 1"},
    {"CountMissing", "DELETE FROM counts WHERE status = 'failed'",
     "of runs that are failed (not_retryable) the store counts 0, there are 1"},
};
TEST_F(Verify, WhatIsDamagedIsShownAsJsonThatSaysSo) {
  EXPECT_EQ(verify("UPDATE run_data SET input = '{\"cut', answer = 'no' WHERE run = 1;"
                   "UPDATE events SET payload = 'oops' WHERE run = 1 AND kind = 'model'")
                .status,
            1);
  const auto ask = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"--store", "sqlite:changed.db"});
    return (*cli_)(words);
  };
  const auto shown = ask({"show", ids_["DONE"], "--json"}).json();
  EXPECT_TRUE(shown["input"].contains("damaged")) << shown;
  EXPECT_TRUE(shown["answer"].contains("damaged")) << shown;
  int damaged = 0;
  const auto listed = ask({"list", "--json"}).json();
  for (const auto& run : listed["runs"]) {
    damaged += run["input"].is_object() && run["input"].contains("damaged") ? 1 : 0;
  }
  EXPECT_EQ(damaged, 1);
  const auto events = ask({"events", ids_["DONE"], "--json"}).json();
  for (const auto& event : events) {
    EXPECT_EQ(event["payload"].contains("damaged"), event["kind"] == "model") << event;
  }
  for (const char* command : {"show", "events", "why"}) {
    const auto told = ask({command, ids_["DONE"]});
    EXPECT_EQ(told.status, 0) << told.err;
    EXPECT_EQ(told.out.find("<discarded>"), std::string::npos) << told.out;
  }
}

INSTANTIATE_TEST_SUITE_P(Store, Verify, ::testing::ValuesIn(kTamperings),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace holdfast::cli_tests
