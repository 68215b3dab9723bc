// Sections about tools (docs/configuration.md).

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "app/config.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

RuntimeOptions tools_of(const std::string& text) { return parse_configuration(text, "f.toml", ""); }

std::string tool_problem_of(const std::string& text) {
  try {
    tools_of(text);
  } catch (const RefusedError& error) {
    return error.what();
  }
  return {};
}

TEST(ConfigTools, ReadsHttpTools) {
  const auto o = tools_of(R"(
[http]
hosts = ["api.example.com", "*.example.org"]
[tools.create]
kind = "http"
method = "PUT"
url = "https://api.example.com/t/{id}"
headers = { X-Team = "ops" }
header_env = { X-Key = "TRACKER_KEY" }
bearer_env = "TRACKER_TOKEN"
connect_timeout = "3s"
probe = ["./probe.sh"]
parameters = { type = "object", required = ["id"] }
)");
  EXPECT_EQ(o.http_hosts, (std::vector<std::string>{"api.example.com", "*.example.org"}));
  ASSERT_TRUE(o.tools[0].http);
  const HttpToolSpec& http = *o.tools[0].http;
  EXPECT_EQ(http.method, "PUT");
  EXPECT_EQ(http.url, "https://api.example.com/t/{id}");
  EXPECT_EQ(http.headers.at("X-Team"), "ops");
  EXPECT_EQ(http.header_env.at("X-Key"), "TRACKER_KEY");
  EXPECT_EQ(http.bearer_env, "TRACKER_TOKEN");
  EXPECT_EQ(http.connect_timeout, std::chrono::seconds(3));
  EXPECT_EQ(o.tools[0].probe_command, std::vector<std::string>{"./probe.sh"});
  EXPECT_EQ(o.tools[0].effect, Effect::non_idempotent_write);
  const auto short_one = tools_of("[tools.t]\nkind = \"http\"\nurl = \"http://h/\"");
  EXPECT_EQ(short_one.tools[0].http->method, "POST");
}

TEST(ConfigTools, NamesWhatIsWrongWithAnHttpTool) {
  const std::string tool = "[tools.t]\nkind = \"http\"\n";
  const std::string good = tool + "url = \"https://h/\"\n";
  const std::pair<std::string, const char*> cases[] = {
      {tool, "f.toml:1: tools.t.url: missing"},
      {tool + "url = \"h/x\"", "f.toml:3: tools.t.url: expected an address"},
      {tool + "url = \"https://h/{id}\"", "list it in parameters.required"},
      {tool + "url = \"https://{h}/\"\n", "no argument can stand in them"},
      {"[http]\nhosts = [\"api.example.com\"]\n" + good,
       "f.toml:5: tools.t.url: [http] hosts does not list https://h"},
      {"[http]\nhosts = [\"https://h\"]", "f.toml:2: http.hosts: expected hosts such as"},
      {"[http]\nhost = []", "f.toml:2: http.host: "},
      {good + "method = \"FETCH\"", "f.toml:4: tools.t.method: expected GET or HEAD"},
      {good + "command = [\"x\"]", "f.toml:4: tools.t.command: a tool of kind \"http\" has no"},
      {good + "bearer_env = \"no name\"", "f.toml:4: tools.t.bearer_env: expected the name"},
      {good + "header_env = { \"a b\" = \"X\" }", "not a name of an HTTP header"},
      {"[tools.t]\ncommand = [\"t\"]\nurl = \"https://h/\"",
       "f.toml:3: tools.t.url: only a tool of kind \"http\" has it"},
  };
  for (const auto& [file, message] : cases) {
    const auto text = tool_problem_of(file);
    EXPECT_NE(text.find(message), std::string::npos) << file << "\n---\n" << text;
  }
}

}  // namespace
}  // namespace holdfast
