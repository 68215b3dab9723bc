#include "net/sse.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace holdfast {
namespace {

std::vector<SseEvent> parse_in_pieces(const std::string& text, std::size_t piece) {
  SseParser parser;
  std::vector<SseEvent> out;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    for (SseEvent& event : parser.feed(text.substr(at, piece))) out.push_back(std::move(event));
  }
  for (SseEvent& event : parser.finish()) out.push_back(std::move(event));
  return out;
}

TEST(SseParser, ReadsEveryFormSplitAnywhere) {
  struct Case {
    std::string text;
    std::vector<SseEvent> events;
  };
  const Case cases[] = {
      {"data: a\n\n", {{"", "a"}}},
      {"data: a\r\n\r\ndata: b\r\n\r\n", {{"", "a"}, {"", "b"}}},
      {"data: a\r\rdata: b\r\r", {{"", "a"}, {"", "b"}}},
      {"data: a", {{"", "a"}}},
      {"data: a\n", {{"", "a"}}},
      {"data:a\n\n", {{"", "a"}}},
      {"data:  a\n\n", {{"", " a"}}},
      {"data: a\ndata: b\n\n", {{"", "a\nb"}}},
      {"data\n\n", {{"", ""}}},
      {": comment\n\ndata: a\n\n: more\n\n", {{"", "a"}}},
      {"event: error\ndata: {}\n\ndata: x\n\n", {{"error", "{}"}, {"", "x"}}},
      {"id: 7\nretry: 10\ndata: a\n\n", {{"", "a"}}},
      {"\xEF\xBB\xBF"
       "data: a\n\n",
       {{"", "a"}}},
      {"data: \xC3\xA4\xE2\x82\xAC\n\n", {{"", "\xC3\xA4\xE2\x82\xAC"}}},
      {"event: lost\n\ndata: a\n\n", {{"", "a"}}},
      {"unknown: x\ndata: a:b\n\n", {{"", "a:b"}}},
      {"\n\n\n", {}},
      {"", {}},
  };
  for (const Case& c : cases) {
    for (std::size_t piece = 1; piece <= c.text.size() + 1; ++piece) {
      EXPECT_EQ(parse_in_pieces(c.text, piece), c.events) << c.text << " in pieces of " << piece;
    }
  }
}

RC_GTEST_PROP(SseParser, GivesTheSameEventsForAnySplit, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "data: x", "data:", "event: e", ":", "\n", "\r\n", "\r", "\n\n", "id: 1", "a"));
  std::string text;
  for (const std::string& part : parts) text += part;
  const auto piece = *rc::gen::inRange<std::size_t>(1, 8);
  RC_ASSERT(parse_in_pieces(text, piece) == parse_in_pieces(text, text.size() + 1));
}

}  // namespace
}  // namespace holdfast
