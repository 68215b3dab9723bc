#include "tool/url_template.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

const Json kAny = {{"type", "object"}, {"required", {"id", "q"}}};
constexpr const char* kTemplate = "https://api.example.com/t/{id}?q={q}";

std::string filled(const std::string& text, const Json& arguments) {
  const FilledUrl url = fill_url(text, arguments);
  return url.problem.empty() ? url.url : "refused: " + url.problem;
}

TEST(UrlTemplate, PutsArgumentsInTheirPlaces) {
  const FilledUrl url = fill_url(kTemplate, {{"id", 7}, {"q", "a b&c=d#é"}, {"other", 1}});
  EXPECT_EQ(url.url, "https://api.example.com/t/7?q=a%20b%26c%3Dd%23%C3%A9");
  EXPECT_EQ(url.used, (std::vector<std::string>{"id", "q"}));
  EXPECT_EQ(filled("http://h/{id}", {{"id", true}}), "http://h/true");
}

TEST(UrlTemplate, NoArgumentLeavesItsSegment) {
  for (const char* value :
       {"", ".", "..", "../admin", "a/../b", "a\\..\\b", "a/.", "a\nb", "\x7f"}) {
    EXPECT_TRUE(filled("http://h/t/{id}", {{"id", value}}).starts_with("refused: ")) << value;
  }
  // Two of them could make what neither is.
  EXPECT_TRUE(filled("http://h/t/{a}{b}", {{"a", "x"}, {"b", "y"}}) == "http://h/t/xy");
  EXPECT_TRUE(filled("http://h/t/.{a}/x", {{"a", "."}}).starts_with("refused: "));
  EXPECT_TRUE(filled("http://h/t/%2e{a}/x", {{"a", "."}}).starts_with("refused: "));
  // What a server could take for more of the address is only text.
  EXPECT_EQ(filled("http://h/t/{id}/x", {{"id", "a/b?c#d@evil.example:1%2e"}}),
            "http://h/t/a%2Fb%3Fc%23d%40evil.example%3A1%252e/x");
  EXPECT_EQ(filled("http://h/t?x={id}", {{"id", "../a"}}), "http://h/t?x=..%2Fa");
}

TEST(UrlTemplate, OnlyScalarsStandInAnAddress) {
  for (const Json& value : {Json(), Json::array({1}), Json{{"a", 1}}}) {
    EXPECT_TRUE(filled("http://h/{id}", {{"id", value}}).starts_with("refused: "));
  }
  EXPECT_TRUE(filled("http://h/{id}", Json::object()).starts_with("refused: "));
}

TEST(UrlTemplate, SaysWhatIsWrongWithATemplate) {
  EXPECT_EQ(url_template_problem(kTemplate, kAny), "");
  const Json with_default = {{"properties", {{"id", {{"default", "7"}}}}}};
  EXPECT_EQ(url_template_problem("http://[::1]:80/{id}", with_default), "");
  for (const char* text : {"",
                           "api.example.com/t",
                           "ftp://h/",
                           "https:///t",
                           "https://{id}/t",
                           "https://h:{id}/t",
                           "https://h{id}/t",
                           "{id}://h/",
                           "https://user:pass@h/t",
                           "https://h/a b",
                           "https://h/a#b",
                           "https://h\\@evil/",
                           "https://h/{id",
                           "https://h/id}",
                           "https://h/{}",
                           "https://h/{a b}",
                           "https://h/../t",
                           "https://h/%2E%2e/t",
                           "https://h/{unknown}",
                           "https://h/\xC3\xA9"}) {
    EXPECT_NE(url_template_problem(text, kAny), "") << text;
  }
}

TEST(UrlTemplate, KnowsTheHostsThatAreListed) {
  EXPECT_EQ(origin_of("HTTPS://Api.Example.com:8443/T"), "https://api.example.com:8443");
  EXPECT_TRUE(is_host_listed("https://any.example/", {}));
  EXPECT_TRUE(is_host_listed("https://API.example.com/x", {"api.example.com"}));
  EXPECT_TRUE(is_host_listed("https://api.example.com:8443/x", {"api.example.com"}));
  EXPECT_TRUE(is_host_listed("https://api.example.com:8443/x", {"api.example.com:8443"}));
  EXPECT_FALSE(is_host_listed("https://api.example.com:9/x", {"api.example.com:8443"}));
  EXPECT_TRUE(is_host_listed("https://a.example.org/", {"*.example.org"}));
  EXPECT_FALSE(is_host_listed("https://example.org/", {"*.example.org"}));
  EXPECT_FALSE(is_host_listed("https://evilexample.org/", {"*.example.org"}));
  EXPECT_FALSE(is_host_listed("https://api.example.com.evil.example/", {"api.example.com"}));
  EXPECT_FALSE(is_host_listed("https://api.example.com@evil.example/", {"api.example.com"}));
  EXPECT_TRUE(is_host_listed("http://[::1]:80/", {"[::1]"}));
  EXPECT_EQ(host_entry_problem("*.example.org"), "");
  EXPECT_EQ(host_entry_problem("127.0.0.1:80"), "");
  for (const char* entry : {"", "*", "https://h", "h/x", "a b", "*.", "u@h"}) {
    EXPECT_NE(host_entry_problem(entry), "") << entry;
  }
}

}  // namespace
}  // namespace holdfast
