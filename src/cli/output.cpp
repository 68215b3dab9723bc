#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace holdfast {
namespace {

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::none:
      return "";
    case Colour::bold:
      return "1";
    case Colour::dim:
      return "2";
    case Colour::red:
      return "31";
    case Colour::green:
      return "32";
    case Colour::yellow:
      return "33";
    case Colour::blue:
      return "34";
  }
  return "";
}

std::string painted(bool on, Colour colour, std::string_view text) {
  if (!on || colour == Colour::none || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(colour), text);
}

}  // namespace

void Output::line(std::string_view text) { raw(std::string(text) + "\n"); }

void Output::raw(std::string_view text) {
  const std::lock_guard lock(mutex_);
  clear_status();
  setup_.write_result(text);
}

void Output::value(const Json& json) {
  const auto text = dump_json(json);
  line(setup_.result_is_terminal ? safe_json(text) : text);
}

void Output::need_reader() const {
  if (setup_.reader_is_gone && setup_.reader_is_gone()) throw OutputClosed{};
}

void Output::note(std::string_view text) {
  const std::lock_guard lock(mutex_);
  clear_status();
  setup_.write_note(std::string(text) + "\n");
}

void Output::error(std::string_view text) {
  note(fmt::format("{} {}", paint_note(Colour::red, "holdfast:"), safe_text(text)));
}

void Output::status(std::string_view text) {
  if (!setup_.note_is_terminal) return;
  const std::lock_guard lock(mutex_);
  clear_status();
  if (text.empty()) return;
  // Nothing wider than a narrow terminal: a wrapped line could not be taken back.
  setup_.write_note(paint_note(Colour::dim, shorten(text, 78)));
  status_shown_ = true;
}

void Output::clear_status() {
  if (!status_shown_) return;
  setup_.write_note("\r\x1b[K");
  status_shown_ = false;
}

std::string Output::paint(Colour colour, std::string_view text) const {
  return painted(setup_.colours && setup_.result_is_terminal, colour, text);
}

std::string Output::paint_note(Colour colour, std::string_view text) const {
  return painted(setup_.colours && setup_.note_is_terminal, colour, text);
}

std::size_t text_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\x1b') {
      at = std::min(text.find('m', at), text.size() - 1) + 1;
      continue;
    }
    at += character_bytes(text, at);
    ++width;
  }
  return width;
}

std::string shorten(std::string_view text, std::size_t width) {
  // Four bytes are the most that a character takes: what is beyond cannot be shown anyway.
  const auto safe = safe_line(text.substr(0, (width + 1) * 4));
  std::string shown;
  std::size_t count = 0;
  for (std::size_t at = 0; at < safe.size(); ++count) {
    const auto length = character_bytes(safe, at);
    if (count + 1 == width && at + length < safe.size()) return shown + "…";
    shown += safe.substr(at, length);
    at += length;
  }
  return shown;
}

std::string shorten_json(const Json& value, std::size_t width) {
  return shorten(value.is_string() ? value.get<std::string>() : dump_json(value), width);
}

std::string render_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], text_width(row[i]));
    }
  }
  std::string table;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      table += row[i];
      if (i + 1 < row.size()) table.append(widths[i] - text_width(row[i]) + 2, ' ');
    }
    table += '\n';
  }
  return table;
}

}  // namespace holdfast
