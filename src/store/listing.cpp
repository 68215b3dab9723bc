#include "store/listing.hpp"

#include <charconv>
#include <string_view>

namespace holdfast {
namespace {

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string format_cursor(const ListFilter& filter, const ListCursor& cursor) {
  if (!filter.oldest_first) return "n" + std::to_string(cursor.row);
  return "o" + std::to_string(cursor.finished_at) + "." + cursor.id;
}

std::optional<ListCursor> parse_cursor(const ListFilter& filter) {
  if (!filter.after) return std::nullopt;
  const std::string_view text = *filter.after;
  ListCursor cursor;
  if (!filter.oldest_first && text.starts_with('n')) {
    if (const auto row = parse_number(text.substr(1))) {
      cursor.row = *row;
      return cursor;
    }
  }
  if (filter.oldest_first && text.starts_with('o')) {
    const auto dot = text.find('.');
    const auto at =
        dot == std::string_view::npos ? std::nullopt : parse_number(text.substr(1, dot - 1));
    if (at) {
      cursor.finished_at = *at;
      cursor.id = std::string(text.substr(dot + 1));
      return cursor;
    }
  }
  throw RefusedError(Refusal::usage, "'" + *filter.after +
                                         "' is not a cursor of this listing; pass the `next` of "
                                         "the page before, with the same filter");
}

}  // namespace holdfast
