#include "cli/output.hpp"

#include <gtest/gtest.h>

#include "cli/format.hpp"

namespace holdfast {
namespace {

TEST(Output, ShortensAtACharacter) {
  EXPECT_EQ(shorten("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten("abcdefg", 6), "abcde…");
  EXPECT_EQ(shorten("世界世界", 3), "世界…");
  EXPECT_EQ(shorten("", 3), "");
  EXPECT_EQ(text_width(shorten(std::string(1000, '\x1b'), 20)), 20u);
}

TEST(Output, TablesAlignInCharactersAndIgnoreColours) {
  EXPECT_EQ(render_table({{"é", "x"}, {"ab", "y"}}), "é   x\nab  y\n");
  EXPECT_EQ(render_table({{"\x1b[31mab\x1b[0m", "x"}, {"abc", "y"}}),
            "\x1b[31mab\x1b[0m   x\nabc  y\n");
}

struct Streams {
  std::string out;
  std::string err;
  Output make(bool terminal, bool colours) {
    Output::Setup setup;
    setup.write_result = [this](std::string_view text) { out += text; };
    setup.write_note = [this](std::string_view text) { err += text; };
    setup.result_is_terminal = terminal;
    setup.note_is_terminal = terminal;
    setup.colours = colours;
    return Output(std::move(setup));
  }
};

TEST(Output, ColoursAndTheLiveLineNeedATerminal) {
  Streams streams;
  auto pipe = streams.make(false, true);
  EXPECT_EQ(pipe.paint(Colour::red, "x"), "x");
  pipe.status("working");
  EXPECT_EQ(streams.err, "");
  auto plain = streams.make(true, false);
  EXPECT_EQ(plain.paint(Colour::red, "x"), "x");
  auto terminal = streams.make(true, true);
  EXPECT_EQ(terminal.paint(Colour::red, "x"), "\x1b[31mx\x1b[0m");
}

TEST(Output, TheLiveLineIsTakenBackBeforeAnythingElse) {
  Streams streams;
  auto out = streams.make(true, false);
  out.status("one");
  out.note("two");
  EXPECT_EQ(streams.err, "one\r\x1b[Ktwo\n");
}

TEST(Output, JsonOnATerminalIsStillTheSameValue) {
  Streams streams;
  const Json value = {{"k", "\xc2\x9b \x7f \xe2\x80\xae \x1b ü"}};
  streams.make(true, false).value(value);
  EXPECT_EQ(streams.out.find("\xc2\x9b"), std::string::npos);
  EXPECT_EQ(streams.out.find('\x7f'), std::string::npos);
  EXPECT_NE(streams.out.find("ü"), std::string::npos);
  EXPECT_EQ(Json::parse(streams.out), value);
}

TEST(Format, AgesHaveTheirTwoLargestUnits) {
  EXPECT_EQ(age_text(Duration(0)), "0ms");
  EXPECT_EQ(age_text(Duration(999)), "999ms");
  EXPECT_EQ(age_text(Duration(5'000)), "5s");
  EXPECT_EQ(age_text(Duration(200'000)), "3m 20s");
  EXPECT_EQ(age_text(Duration(3'600'000)), "1h");
  EXPECT_EQ(age_text(Duration(90'061'000)), "1d 1h");
  EXPECT_EQ(age_text(Duration(-5)), "0ms");
}

TEST(Format, EventsSayWhatHappened) {
  Event event;
  event.kind = EventKind::tool;
  event.payload = {{"name", "tool:pay"},
                   {"key", "tool:pay#2.1"},
                   {"effect", "non_idempotent_write"},
                   {"arguments", {{"amount", 12}}},
                   {"result", {{"ok", true}}}};
  EXPECT_EQ(event_text(event),
            "tool:pay#2.1 (non_idempotent_write) {\"amount\":12} → {\"ok\":true}");
  event.kind = EventKind::reaped;
  event.payload = {{"worker", "w1"}, {"cause", "presence"}, {"step", "tool:pay"}};
  EXPECT_EQ(event_text(event), "worker w1 lost by presence at step tool:pay");
  event.kind = EventKind::requeued;
  event.payload = {
      {"class", "overloaded"}, {"code", "503"}, {"message", "busy\x1b"}, {"charged", true}};
  EXPECT_EQ(event_text(event), "overloaded 503: busy\\x1b");
  event.kind = Word<EventKind>(std::string("from_the_future"));
  event.payload = {{"x", 1}};
  EXPECT_EQ(event_text(event), "{\"x\":1}");
  event.kind = EventKind::model;
  event.payload = "not an object";
  EXPECT_EQ(event_text(event), "not an object");
}

}  // namespace
}  // namespace holdfast
