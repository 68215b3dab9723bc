// Exit codes, shapes of JSON and bad input.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "cli/program.hpp"

namespace holdfast::cli_tests {
namespace {

std::set<std::string> keys_of(const Json& json) {
  std::set<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.insert(key);
  return keys;
}

TEST(Usage, MistakesAreTwoAndSayTheRemedy) {
  const Folder cli;
  cli.write_agent(false);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "Usage: holdfast"},
      {{"enqeue"}, "did you mean \"enqueue\"?"},
      {{"list", "--limt", "3"}, "did you mean --limit?"},
      {{"list", "--limit", "0"}, "--limit: expected a whole number from 1 to "},
      {{"list", "--status", "runing"}, "did you mean \"running\"?"},
      {{"show"}, "ID is missing"},
      {{"run", "pay"}, "--input"},
      {{"enqueue", "pay", "--input", "x", "--delay", "soon"}, "--delay: expected a duration"},
      {{"enqueue", "pay", "--input", "x", "--at", "tomorrow"}, "with its offset"},
      {{"enqueue", "pay", "--input", "x", "--label", "oops"}, "KEY=VALUE"},
      {{"enqueue", "pay", "--input-file", "none.txt"}, "none.txt: cannot be read"},
      {{"worker", "--concurrency", "0"}, "--concurrency: expected a whole number from 1 to "},
      {{"worker", "--queue", "a\nb"}, "queue holds a control character"},
      {{"worker", "--queue", std::string(129, 'q')}, "queue has 129 bytes"},
      {{"--store", "host=db password=s3cret", "list"}, "'…' is not"},
      {{"--store", "postgresql://db:port/x", "list"}, "1 to 65535"},
      {{"--store", "postgresql://db/x?poolr=none", "list"}, "no option `poolr`"},
      {{"--store", "postgresql://db/x?schema=select", "list"}, "reserved words"},
      {{"--config", "none.toml", "list"}, "none.toml: no such file"},
      {{"--store", "mysql:x", "list"}, "'mysql:…' is not"},
      {{"--store", "sqlite:", "list"}, "sqlite:PATH"},
      {{"--log-level", "loud", "list"}, "expected debug, info, warn, error or off"},
  };
  for (const auto& [words, message] : cases) {
    const auto result = cli(words);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_EQ(result.out, "") << message;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
}

TEST(Usage, MistakesInTheConfigurationNameFileLineAndKey) {
  const Folder cli;
  cli.write("holdfast.toml", "[lease]\nduration = \"60s\"\nheartbaet = \"1s\"\n");
  const auto result = cli({"list"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("holdfast.toml:3: lease.heartbaet: unknown key; did you mean "
                            "\"heartbeat\"?"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(cli({"doctor"}).status, 2);
  EXPECT_FALSE(fs::exists(cli.path() / "holdfast.db")) << "nothing was begun";
}

TEST(Usage, AScriptThatCannotBeUsedIsTwo) {
  const Folder cli;
  cli.write_agent(false);
  for (const auto* script : {"", "{", "{}", "[]", "[7]", "[{\"replay\": \"x\"}]"}) {
    cli.write("turns.json", script);
    const auto result = cli({"run", "pay", "--input", "x"});
    EXPECT_EQ(result.status, 2) << script;
    EXPECT_NE(result.err.find("turns.json"), std::string::npos) << result.err;
    EXPECT_EQ(cli({"worker", "--drain"}).status, 2) << script;
  }
  // Nothing was begun, and who only looks or asks for a run needs no script.
  EXPECT_EQ(cli({"list", "--json"}).json()["runs"], Json::array());
  EXPECT_EQ(cli({"enqueue", "pay", "--input", "x"}).status, 0);
  fs::remove(cli.path() / "turns.json");
  EXPECT_EQ(cli({"list", "--json"}).json()["runs"].size(), 1u);
  EXPECT_EQ(cli({"doctor"}).status, 1);
}

/// A worker without the key of an agent leaves its runs to others instead of failing them.
TEST(Usage, AKeyThatIsMissingIsTwoAndFailsNoRun) {
  const Folder cli;
  const std::string keyed =
      "[providers.far]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"
      "api_key_env = \"FAR_KEY\"\n[agents.far]\nmodels = [\"far/m\"]\n";
  const auto expect_refused = [&](const std::string& key, const std::string& words) {
    const std::map<std::string, std::string> env = {{"FAR_KEY", key}};
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"worker", "--drain"},
          {"run", "far", "--input", "x"},
          {"enqueue", "far", "--input", "x", "--inline"}}) {
      const auto result = cli.run({command, env});
      EXPECT_EQ(result.status, 2) << command.front() << result.err;
      EXPECT_NE(result.err.find("FAR_KEY " + words), std::string::npos) << result.err;
    }
    const auto doctor = cli.run({{"doctor"}, env});
    EXPECT_EQ(doctor.status, 1);
    EXPECT_NE(doctor.out.find("FAR_KEY " + words), std::string::npos) << doctor.out;
  };
  cli.write("holdfast.toml", keyed);
  expect_refused("", "is not set");
  expect_refused("sk-0123456789\n", "holds a line break");
  expect_refused("sk-0123456789\r\nX-Other: yes", "holds a line break");
  EXPECT_EQ(cli({"list", "--json"}).json()["runs"], Json::array()) << "nothing was begun";

  cli.write_agent(false, "");
  cli.write("holdfast.toml", cli.read("holdfast.toml") + keyed);
  const auto left = cli({"enqueue", "far", "--input", "x"}).lines().at(0);
  const auto served = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  const auto worker = cli({"worker", "--drain"});
  EXPECT_EQ(worker.status, 0) << worker.err;
  EXPECT_NE(worker.err.find("FAR_KEY is not set"), std::string::npos) << worker.err;
  EXPECT_EQ(cli({"show", served, "--json"}).json()["status"], "completed");
  const auto shown = cli({"show", left, "--json"}).json();
  EXPECT_EQ(shown["status"], "queued");
  EXPECT_EQ(shown["claim"], 0);
}

TEST(Usage, ANumberThatWouldBeRoundedIsTwo) {
  const Folder cli;
  cli.write_agent(false);
  const auto result = cli({"enqueue", "pay", "--input-json", "{\"id\": 12345678901234567890123}"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("12345678901234567890123"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("as a string"), std::string::npos) << result.err;
  EXPECT_EQ(cli({"list", "--json"}).json()["runs"], Json::array());
}

TEST(Usage, AToolThatIsMissingIsFoundByDoctorAndEndsARun) {
  const Folder cli;
  cli.write_agent(false);
  fs::remove(cli.path() / "look.sh");
  const auto doctor = cli({"doctor", "--json"});
  EXPECT_EQ(doctor.status, 1);
  EXPECT_NE(doctor.out.find("look"), std::string::npos) << doctor.out;
  const auto result = cli({"run", "pay", "--input", "x"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("look.sh"), std::string::npos) << result.err;
}

TEST(Usage, ARequestOverTheLimitIsTwo) {
  const Folder cli;
  cli.write_agent(false, "[limits]\nrequest = 100\n");
  const std::string large(101, 'x');
  for (const auto& call : {Call{{"enqueue", "pay", "--input", large}},
                           Call{{"enqueue", "pay", "--input-json", "\"" + large + "\""}},
                           Call{{"enqueue", "pay", "--input-file", "-"}, {}, large},
                           Call{{"enqueue", "pay", "--input-file", "/dev/zero"}}}) {
    const auto result = cli.run(call);
    EXPECT_EQ(result.status, 2);
    EXPECT_NE(result.err.find("[limits] request"), std::string::npos) << result.err;
  }
  EXPECT_EQ(cli({"list", "--json"}).json()["runs"], Json::array());
}

TEST(Usage, ATextOfExactlyTheLimitIsTaken) {
  const Folder cli;
  cli.write_agent(false);
  cli.write("request.txt", std::string(1 << 20, '"'));
  const auto taken = cli({"enqueue", "pay", "--input-file", "request.txt"});
  EXPECT_EQ(taken.status, 0) << taken.err;
  cli.write("request.txt", std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(cli({"enqueue", "pay", "--input-file", "request.txt"}).status, 2);
}

TEST(Usage, ACursorOfAnotherFilterIsTwo) {
  const Folder cli;
  cli.write_agent(false);
  for (int i = 0; i < 2; ++i) cli({"enqueue", "pay", "--input", "x"});
  const std::string next = cli({"list", "--limit", "1", "--json"}).json()["next"];
  EXPECT_EQ(cli({"list", "--after", next, "--json"}).json()["runs"].size(), 1u);
  const auto other = cli({"list", "--status", "failed", "--after", next});
  EXPECT_EQ(other.status, 2);
  EXPECT_NE(other.err.find("this cursor is of another filter"), std::string::npos) << other.err;
}

TEST(NotFound, IsThree) {
  const Folder cli;
  const std::string id = "0198c1f2-7d30-7000-8000-3b6f5a2c9e10";
  EXPECT_EQ(cli({"run", "pay", "--input", "x"}).status, 3) << "no configuration";
  EXPECT_EQ(cli({"worker"}).status, 3);
  cli.write_agent(false);
  const auto misspelt = cli({"enqueue", "pya", "--input", "x"});
  EXPECT_EQ(misspelt.status, 3);
  EXPECT_NE(misspelt.err.find("did you mean \"pay\"?"), std::string::npos) << misspelt.err;
  for (const auto* command : {"show", "events", "why", "wait", "cancel", "approve", "deny",
                              "redrive", "handover", "wake", "purge"}) {
    EXPECT_EQ(cli({command, id}).status, 3) << command;
  }
  EXPECT_EQ(cli({"input", id, "--values", "{}"}).status, 3);
  EXPECT_EQ(cli({"resolve", id, "--not-landed"}).status, 3);
  EXPECT_EQ(cli({"events", id, "--follow"}).status, 3);
}

TEST(Conflict, IsFour) {
  const Folder cli;
  cli.write_agent(false);
  const auto id = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  EXPECT_EQ(cli({"approve", id}).status, 4);
  EXPECT_EQ(cli({"redrive", id}).status, 4);
  EXPECT_EQ(cli({"resolve", id, "--landed"}).status, 4);
  EXPECT_EQ(cli({"handover", id}).status, 4);
  EXPECT_EQ(cli({"purge", id}).status, 4);
  EXPECT_EQ(cli({"cancel", id}).status, 0);
  EXPECT_EQ(cli({"cancel", id}).status, 0) << "a second cancel changes nothing";
  EXPECT_EQ(cli({"wake", id}).status, 4);
  const auto due = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  const auto woken = cli({"wake", due});
  EXPECT_EQ(woken.status, 4);
  EXPECT_EQ(woken.out, "");
  EXPECT_NE(woken.err.find("it is available already"), std::string::npos) << woken.err;
  EXPECT_NE(woken.err.find("holdfast why " + due), std::string::npos) << woken.err;
  const auto done = cli({"run", "pay", "--input", "x", "--json"}).json();
  EXPECT_EQ(cli({"cancel", done["id"]}).status, 4);
}

TEST(Store, ItsPasswordIsNotSeenByOthersOnTheMachine) {
  const Folder cli;
  // A server that never answers.
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(server, name, size), 0);
  ASSERT_EQ(listen(server, 8), 0);
  ASSERT_EQ(getsockname(server, name, &size), 0);
  const auto place = "127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/db";
  for (const auto& words :
       {std::vector<std::string>{"--store", "postgresql://ann:s3cret@" + place, "list"},
        std::vector<std::string>{"--store=postgres://ann:s3cret@" + place, "list"},
        std::vector<std::string>{"list", "--store",
                                 "postgresql://" + place + "?password=s3cret"}}) {
    const Running program(cli.path(), {words});
    const int client = accept(server, nullptr, nullptr);
    const auto seen = program.command_line();
    EXPECT_NE(seen.find("list"), std::string::npos) << seen;
    EXPECT_EQ(seen.find("s3cret"), std::string::npos) << seen;
    close(client);
  }
  close(server);
}

TEST(Store, ThatCannotBeUsedIsOneAndIsLeftAsItWas) {
  const Folder cli;
  fs::create_directory(cli.path() / "folder");
  cli.write("text.db", std::string(5000, 'x'));
  for (const auto* url : {"sqlite:folder", "sqlite:text.db", "sqlite:/no/such/folder/a.db"}) {
    for (const auto* command : {"list", "stats", "verify", "migrate", "doctor"}) {
      const auto result = cli({"--store", url, command});
      EXPECT_EQ(result.status, 1) << url << " " << command << result.err;
    }
  }
  EXPECT_EQ(cli.read("text.db"), std::string(5000, 'x'));
}

TEST(Json, OfARunHasTheFieldsOfTheSpecification) {
  const Folder cli;
  cli.write_agent(true);
  const auto run = cli({"run", "pay", "--input", "x", "--label", "a=b", "--json"}).json();
  EXPECT_EQ(keys_of(run), (std::set<std::string>{"id",
                                                 "agent",
                                                 "queue",
                                                 "status",
                                                 "reason",
                                                 "origin",
                                                 "priority",
                                                 "input",
                                                 "answer",
                                                 "error",
                                                 "created_at",
                                                 "available_at",
                                                 "started_at",
                                                 "finished_at",
                                                 "claimed_by",
                                                 "claim",
                                                 "lease_expires_at",
                                                 "requeue_count",
                                                 "max_requeues",
                                                 "reclaim_count",
                                                 "redrive_count",
                                                 "pending_effect",
                                                 "pending",
                                                 "iterations",
                                                 "usage",
                                                 "waiting_for",
                                                 "labels",
                                                 "abandoned"}));
  EXPECT_EQ(run["labels"], Json({{"a", "b"}}));
  EXPECT_EQ(keys_of(run["usage"]), (std::set<std::string>{"prompt_tokens", "completion_tokens",
                                                          "total_tokens", "cost_usd"}));
  EXPECT_EQ(run["waiting_for"]["calls"][0]["name"], "pay");
  EXPECT_EQ(run["waiting_for"]["calls"][0]["arguments"], Json({{"amount", 12}}));
}

TEST(Json, OfCommandsIsOneValueOrOneALine) {
  const Folder cli;
  cli.write_agent(false);
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(cli({"enqueue", "pay", "--input", "x"}).lines().at(0));
  const auto page = cli({"list", "--json", "--limit", "2"}).json();
  EXPECT_EQ(page["runs"].size(), 2u);
  const auto rest = cli({"list", "--json", "--after", page["next"]}).json();
  EXPECT_EQ(rest["runs"].size(), 1u);
  EXPECT_EQ(rest["next"], nullptr);
  EXPECT_EQ(cli({"worker", "--drain"}).status, 0);

  const auto events = cli({"events", ids[0], "--json"}).json();
  ASSERT_TRUE(events.is_array());
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(keys_of(events[i]),
              (std::set<std::string>{"run", "sequence", "kind", "at", "claim", "payload"}));
    EXPECT_EQ(events[i]["sequence"], i + 1);
  }
  const auto followed = cli({"events", ids[0], "--json", "--follow"});
  EXPECT_EQ(followed.lines().size(), events.size());
  EXPECT_EQ(Json::parse(followed.lines().back())["kind"], "completed");

  const auto waited = cli({"wait", ids[0], ids[1], "--json"});
  ASSERT_EQ(waited.lines().size(), 2u);
  EXPECT_EQ(Json::parse(waited.lines()[1])["id"], ids[1]);

  EXPECT_EQ(keys_of(cli({"reap", "--json"}).json()),
            (std::set<std::string>{"requeued", "dead_lettered", "skipped", "expired"}));
  EXPECT_EQ(cli({"reap"}).out, "0 requeued, 0 dead-lettered, 0 skipped\n");
  EXPECT_EQ(cli({"stats", "--json"}).json()["by_status"]["completed"], 3);
  EXPECT_TRUE(cli({"workers", "--json"}).json().is_array());
  EXPECT_TRUE(cli({"verify", "--json"}).json().is_array());
  EXPECT_TRUE(cli({"why", ids[0], "--json"}).json().contains("text"));
  EXPECT_EQ(cli({"purge", "--older-than", "0s", "--json"}).json()["total"], 3);
}

TEST(Output, AReaderThatWentAwayEndsItQuietly) {
  const Folder cli;
  cli.write_agent(false);
  cli({"enqueue", "pay", "--input", "x"});
  Call call{{"list", "--json"}};
  call.out_closed = true;
  const auto result = cli.run(call);
  EXPECT_EQ(result.status, 141);
  EXPECT_EQ(result.err, "");
}

TEST(Output, AReaderThatWentAwayEndsAFollowerOfASilentRun) {
  const Folder cli;
  cli.write_agent(false);
  const auto id = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  for (const auto& words : {std::vector<std::string>{"events", id, "--follow", "--after", "1"},
                            std::vector<std::string>{"events", id, "--follow"}}) {
    Call call{words};
    call.out_closed = true;
    const auto result = cli.run(call);
    EXPECT_EQ(result.status, 141);
    EXPECT_EQ(result.err, "");
  }
}

TEST(Output, AFullDiskIsAnError) {
  const Folder cli;
  Call call{{"--help"}};
  call.out_path = "/dev/full";
  const auto result = cli.run(call);
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.err.find("No space left"), std::string::npos) << result.err;
}

TEST(Backup, IsAStoreThatCanBeRead) {
  const Folder cli;
  cli.write_agent(false);
  const auto id = cli({"enqueue", "pay", "--input", "x"}).lines().at(0);
  EXPECT_EQ(cli({"backup", "copy.db"}).status, 0);
  EXPECT_EQ(cli({"backup", "copy.db"}).status, 4);
  EXPECT_EQ(cli({"--store", "sqlite:copy.db", "show", id, "--json"}).json()["id"], id);
}

TEST(Environment, NamesConfigurationAndStore) {
  const Folder cli;
  cli.write_agent(false);
  fs::rename(cli.path() / "holdfast.toml", cli.path() / "other.toml");
  const auto result =
      cli.run({{"enqueue", "pay", "--input", "x"},
               {{"HOLDFAST_CONFIG", "other.toml"}, {"HOLDFAST_STORE", "sqlite:elsewhere.db"}}});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(fs::exists(cli.path() / "elsewhere.db"));
  EXPECT_FALSE(fs::exists(cli.path() / "holdfast.db"));
  EXPECT_EQ(cli.run({{"list"}, {{"HOLDFAST_CONFIG", "gone.toml"}}}).status, 2);
}

TEST(Completion, TheBashScriptCompletesCommandsOptionsAndWords) {
  const Folder cli;
  const auto script = cli({"completion", "bash"});
  ASSERT_EQ(script.status, 0);
  cli.write("completion.bash", script.out);
  const auto complete = [&](const std::string& words) {
    cli.write("try.sh", "source ./completion.bash\nCOMP_WORDS=(" + words +
                            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_holdfast\n"
                            "printf '%s\\n' \"${COMPREPLY[@]}\" > found\n");
    const auto command = "cd '" + cli.path().string() + "' && bash try.sh";
    EXPECT_EQ(system(command.c_str()), 0);
    return cli.read("found");
  };
  EXPECT_EQ(complete("holdfast enq"), "enqueue\n");
  EXPECT_EQ(complete("holdfast --store x li"), "list\n");
  EXPECT_EQ(complete("holdfast enqueue a --idem"), "--idempotency-key\n");
  EXPECT_EQ(complete("holdfast list --status comp"), "completed\n");
  EXPECT_EQ(complete("holdfast list --log-level wa"), "warn\n");
  EXPECT_EQ(complete("holdfast --config comple"), "completion.bash\n");
  EXPECT_EQ(complete("holdfast list --status = comp"), "completed\n");
  cli.write("two words.toml", "");
  EXPECT_EQ(complete("holdfast --config two"), "two words.toml\n");
}

}  // namespace
}  // namespace holdfast::cli_tests
