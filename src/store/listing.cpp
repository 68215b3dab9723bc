#include "store/listing.hpp"

#include <charconv>
#include <string_view>

#include "base/text.hpp"

namespace holdfast {
namespace {

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The first characters of a digest of all that picks and orders the runs; not of the limit.
std::string digest_of(const ListFilter& filter) {
  constexpr std::size_t kDigits = 8;
  const auto text = [](const auto& value) { return value ? Json(*value) : Json(); };
  auto words = Json::array({text(filter.status), text(filter.reason), text(filter.agent),
                            text(filter.queue), filter.labels});
  if (filter.ended_before) words.push_back(filter.ended_before->time_since_epoch().count());
  return sha256_hex(dump_json(words)).substr(0, kDigits);
}

struct CursorParts {
  bool oldest_first = false;
  std::string digest;
  ListCursor cursor;
};

/// `nROW.DIGEST` or `oFINISHED.DIGEST.ID`.
std::optional<CursorParts> parts_of(std::string_view text) {
  CursorParts parts;
  parts.oldest_first = text.starts_with('o');
  const auto dot = text.find('.');
  if ((!parts.oldest_first && !text.starts_with('n')) || dot == text.npos) return std::nullopt;
  const auto number = parse_number(text.substr(1, dot - 1));
  if (!number) return std::nullopt;
  text.remove_prefix(dot + 1);
  const auto end = parts.oldest_first ? text.find('.') : text.size();
  if (end == text.npos) return std::nullopt;
  parts.digest = text.substr(0, end);
  if (!parts.oldest_first) {
    parts.cursor.row = *number;
    return parts;
  }
  parts.cursor.finished_at = *number;
  parts.cursor.id = text.substr(end + 1);
  return parts;
}

}  // namespace

std::string format_cursor(const ListFilter& filter, const ListCursor& cursor) {
  const auto begin = "." + digest_of(filter);
  if (!filter.oldest_first) return "n" + std::to_string(cursor.row) + begin;
  return "o" + std::to_string(cursor.finished_at) + begin + "." + cursor.id;
}

std::optional<ListCursor> parse_cursor(const ListFilter& filter) {
  if (!filter.after) return std::nullopt;
  const auto parts = parts_of(*filter.after);
  if (!parts) {
    throw RefusedError(Refusal::usage, "'" + *filter.after +
                                           "' is not a cursor of a listing; pass the `next` of the "
                                           "page before, with the same filter");
  }
  if (parts->oldest_first != filter.oldest_first || parts->digest != digest_of(filter)) {
    throw RefusedError(Refusal::usage, "'" + *filter.after +
                                           "': this cursor is of another filter; pass the `next` "
                                           "of a page with the filter that it came from");
  }
  return parts->cursor;
}

}  // namespace holdfast
