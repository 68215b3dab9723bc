// Values from outside that are too large, too deep, oddly encoded or of another age.

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "crash/harness.hpp"
#include "support/stub_server.hpp"

namespace holdfast::crash {
namespace {

std::string nested(int depth, char open, char close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open == '[' ? "[" : "{\"a\":";
  text += "1";
  text.append(static_cast<std::size_t>(depth), close);
  return text;
}

TEST(Hostile, AnInputOverTheLimitIsRefusedAtTheDoor) {
  Site site;
  site.write("large", std::string((1u << 20) + 1, 'x'));
  const Result result =
      site.cli({"enqueue", "plain", "--input-file", (site.folder() / "large").string()});
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_NE(result.err.find("limit"), std::string::npos) << result.err;
  EXPECT_TRUE(site.runtime().list({}).runs.empty());
}

TEST(Hostile, AToolResultOverTheLimitIsCutAndItsEffectIsDone) {
  Site site;
  site.write("do.pay", "head -c 3000000 /dev/zero | tr '\\0' x; printed=yes\n");
  const std::string run = site.enqueue("payer");
  Process worker = site.worker();
  ASSERT_TRUE(site.reaches(run, "completed", seconds(60)));
  EXPECT_EQ(site.times("pay"), 1);
  for (const Event& event : site.events(run)) {
    if (!event.kind.is(EventKind::tool)) continue;
    const std::string text = event.payload.dump();
    EXPECT_LT(text.size(), 2u << 20);
    EXPECT_GT(text.size(), 100000u);
  }
  worker.kill();
  site.expect_sound();
}

/// Each is within its limit, together they are ten times that: nothing adds them up.
TEST(Hostile, TenResultsNearTheLimitTogetherAreAllKept) {
  constexpr std::size_t kNear = 130'000;
  Settings settings;
  settings.more = "[limits]\nresult = \"128KiB\"\n";
  Site site(settings);
  site.write("do.lookup",
             "head -c " + std::to_string(kNear) + " /dev/zero | tr '\\0' x; printed=yes\n");
  Json calls = Json::array();
  for (int i = 0; i < 10; ++i) calls.push_back({{"name", "lookup"}, {"arguments", {{"id", "c"}}}});
  site.script("reader", {Json{{"tool_calls", calls}}, Json{{"reply", "found"}}});
  const std::string run = site.enqueue("reader");
  Process worker = site.worker();
  ASSERT_TRUE(site.reaches(run, "completed", seconds(120)));
  EXPECT_EQ(site.times("lookup"), 10);
  EXPECT_EQ(site.show(run).at("requeue_count"), 0);
  int kept = 0;
  for (const Event& event : site.events(run)) {
    if (!event.kind.is(EventKind::tool)) continue;
    const Json& result = event.payload.at("result");
    const std::string text = result.is_string() ? result.get<std::string>() : result.dump();
    EXPECT_GE(text.size(), kNear);
    EXPECT_EQ(text.find("[cut"), std::string::npos);
    ++kept;
  }
  EXPECT_EQ(kept, 10);
  const Result shown = site.cli({"--json", "events", run});
  EXPECT_TRUE(Json::accept(shown.out));
  worker.kill();
  site.expect_sound();
}

TEST(Hostile, DeepJsonIsRefusedOrKeptAsTextAndCrashesNobody) {
  for (const int depth : {1000, 100000}) {
    for (const auto& [open, close] : {std::pair{'[', ']'}, std::pair{'{', '}'}}) {
      SCOPED_TRACE(std::to_string(depth) + " of " + open);
      Site site;
      const std::string deep = nested(depth, open, close);
      site.write("deep.json", deep);
      site.write("do.lookup", "cat \"$2/deep.json\"; printed=yes\n");
      const std::string run = site.enqueue("reader");
      Process worker = site.worker();
      EXPECT_TRUE(site.reaches(run, "completed", seconds(60)));
      const Result input =
          site.cli({"enqueue", "plain", "--input-file", (site.folder() / "deep.json").string()});
      EXPECT_EQ(input.code, 0) << "it is text: " << input.err;
      if (depth == 1000) {
        const Result parsed = site.cli({"enqueue", "plain", "--input-json", deep});
        EXPECT_EQ(parsed.code, 2) << parsed.err;
      }
      worker.kill();
      site.expect_sound();
    }
  }
}

TEST(Hostile, OddCharactersAreStoredEverywhereTheyMayComeFrom) {
  const std::vector<std::string> kinds = {
      std::string("a\0b", 3),     "\xed\xa0\x80 lone", "\xef\xbf\xbf",
      "\xf0\x9f\x98\x80",         "\x80 byte",         "\\u0000 escaped",
      "<script>alert(1)</script>"};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    SCOPED_TRACE("kind " + std::to_string(i));
    Site site;
    site.write("odd", kinds[i]);
    site.write("do.lookup", "cat \"$2/odd\"; printed=yes\n");
    const Result made =
        site.cli({"enqueue", "reader", "--input-file", (site.folder() / "odd").string()});
    ASSERT_EQ(made.code, 0) << "what is no text becomes U+FFFD: " << made.err;
    const std::string run = made.out.substr(0, made.out.find('\n'));
    Process worker = site.worker();
    EXPECT_TRUE(site.reaches(run, "completed"));
    for (const std::vector<std::string>& args : {std::vector<std::string>{"--json", "show", run},
                                                 {"--json", "events", run},
                                                 {"--json", "list"}}) {
      const Result shown = site.cli(args);
      EXPECT_EQ(shown.code, 0) << shown.err;
      EXPECT_TRUE(Json::accept(shown.out)) << shown.out;
    }
    worker.kill();
    site.expect_sound();
  }
}

/// The bytes of a model's answer with one choice, of which `message` is the rest.
testing::StubAnswer said(const std::string& message, const std::string& reason) {
  return testing::StubAnswer::json(
      200, R"({"choices":[{"index":0,"message":{"role":"assistant",)" + message +
               R"(},"finish_reason":")" + reason +
               R"("}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}})");
}

/// What a model says, a tool returns and a person types is stored, whatever it consists of, and
/// reads the same on every store.
TEST(Hostile, OddCharactersOfModelsToolsAndPeopleReadTheSameOnEveryStore) {
  // U+0000, a lone surrogate as an escape and as bytes, a byte that begins nothing, U+FFFF, an
  // emoji.
  const std::string bytes = "\xed\xa0\x80 \x80 \xef\xbf\xbf \xf0\x9f\x98\x80";
  const std::string in_json = R"(a\u0000b \ud800 )" + bytes;
  const std::string readable_bytes =
      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd \xef\xbf\xbf \xf0\x9f\x98\x80";
  const std::string readable = std::string("a\0b ", 4) + "\xef\xbf\xbd " + readable_bytes;
  testing::StubServer model;
  model.play(said(R"("content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":)"
                  R"("send","arguments":"{\"text\":\"a\\u0000b \\ud800 )" +
                      bytes + R"(\"}"}}])",
                  "tool_calls"));
  model.play(said("\"content\":\"" + in_json + "\"", "stop"));
  Settings settings;
  settings.more = "[providers.live]\nkind = \"openai\"\nbase_url = \"" + model.url() +
                  "\"\nstream = false\n[agents.caller]\nmodels = [\"live/m\"]\n"
                  "tools = [\"send\"]\n";
  Site site(settings);
  site.write("odd", std::string("a\0b ", 4) + bytes);
  site.write("do.send", "cat \"$2/odd\"; printed=yes\n");
  const std::string run = site.enqueue("caller", {"--label", "kind=" + bytes});
  Process worker = site.worker({"--name", "first"});
  ASSERT_TRUE(site.reaches(run, "waiting_for_approval"));
  EXPECT_EQ(site.cli({"approve", run, "--note", bytes, "--as", bytes}).code, 0);
  ASSERT_TRUE(site.reaches(run, "completed"));

  const Json shown = site.show(run);
  EXPECT_EQ(shown.at("answer"), readable);
  EXPECT_EQ(shown.at("labels").at("kind"), readable_bytes);
  for (const Event& event : site.events(run)) {
    if (event.kind.is(EventKind::approved)) {
      EXPECT_EQ(event.payload.at("note"), readable_bytes);
      EXPECT_EQ(event.payload.at("actor"), readable_bytes);
    } else if (event.kind.is(EventKind::tool)) {
      EXPECT_EQ(event.payload.at("result"), std::string("a\0b ", 4) + readable_bytes);
      EXPECT_EQ(event.payload.at("arguments").at("text"), readable);
    }
  }
  EXPECT_EQ(site.times("send"), 1);
  // Names are no texts: they are refused at the door, with the name of the field.
  for (const char* option : {"--idempotency-key", "--queue"}) {
    const Result refused = site.cli({"enqueue", "plain", "--input", "x", option, bytes});
    EXPECT_EQ(refused.code, 2) << option << ": " << refused.err;
    EXPECT_NE(refused.err.find("UTF-8"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(site.runtime().list({}).runs.size(), 1u);
  worker.kill();
  site.expect_sound();
}

TEST(Hostile, DueTimesAreExactInEveryTimeZone) {
  Site site;
  std::string expected;
  for (const char* zone : {"UTC", "Asia/Kolkata", "America/St_Johns", "Europe/Berlin"}) {
    SCOPED_TRACE(zone);
    const std::map<std::string, std::string> env = {{"TZ", zone}};
    const auto due_at = [&](const std::string& when) {
      const Result made =
          site.cli({"--json", "enqueue", "plain", "--input", "x", "--at", when}, env);
      EXPECT_EQ(made.code, 0) << made.err;
      return Json::parse(made.out).at("available_at").get<std::string>();
    };
    // Both sides of the two summer-time switches, and a far year.
    EXPECT_EQ(due_at("2027-03-28T01:59:59+01:00"), "2027-03-28T00:59:59.000Z");
    EXPECT_EQ(due_at("2027-03-28T03:00:00+02:00"), "2027-03-28T01:00:00.000Z");
    EXPECT_EQ(due_at("2027-10-31T02:30:00+02:00"), "2027-10-31T00:30:00.000Z");
    EXPECT_EQ(due_at("2027-10-31T02:30:00+01:00"), "2027-10-31T01:30:00.000Z");
    EXPECT_EQ(due_at("2040-01-01T05:30:00+05:30"), "2040-01-01T00:00:00.000Z");
    EXPECT_LT(due_at("1970-01-01T00:00:00Z"), "2040") << "what lies in the past is due at once";
    EXPECT_EQ(
        site.cli({"enqueue", "plain", "--input", "x", "--at", "2027-03-28T02:30:00"}, env).code, 2)
        << "a local time without an offset means nothing";

    const std::string run = site.enqueue("plain", {"--delay", "90m"});
    const holdfast::Run stored = site.runtime().get(run);
    EXPECT_GE(*stored.available_at - stored.created_at, std::chrono::minutes(90));
    EXPECT_LE(*stored.available_at - stored.created_at, std::chrono::minutes(90) + milliseconds(1));
  }
}

TEST(Hostile, AReaderThatGoesAwayKillsNobody) {
  Site site;
  for (int i = 0; i < 3; ++i) site.enqueue("errand");
  Process worker = site.worker();
  for (const auto& run : site.runtime().list({}).runs)
    ASSERT_TRUE(site.reaches(run.id, "completed"));
  // `holdfast … | head -1`, written out: the shell's status of the first command.
  site.write(
      "pipe.sh",
      "set -o pipefail\n\"$@\" 2>\"$ERRORS\" | head -n 1 >/dev/null\necho ${PIPESTATUS[0]}\n");
  for (const std::vector<std::string>& args : {std::vector<std::string>{"events", "--all"},
                                               {"--json", "list"},
                                               {"--json", "events", "--all", "--follow"}}) {
    Command command = site.command(args);
    command.args.insert(command.args.begin(), {"/bin/bash", (site.folder() / "pipe.sh").string()});
    command.env["ERRORS"] = (site.folder() / "pipe.errors").string();
    if (args.back() == "--follow") site.enqueue("errand");
    const Result result = site.run(command, seconds(30));
    const std::string status = result.out.substr(0, result.out.find('\n'));
    EXPECT_TRUE(status == "0" || status == "141") << args.back() << ": " << status << result.err;
    EXPECT_EQ(site.read("pipe.errors").find("Sanitizer"), std::string::npos);
  }
  EXPECT_FALSE(worker.status());
  worker.kill();
  site.expect_sound();
}

}  // namespace
}  // namespace holdfast::crash
