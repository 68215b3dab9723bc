#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/json.hpp"
#include "holdfast/time.hpp"

namespace holdfast {

/// Valid UTF-8: invalid bytes and lone surrogates become U+FFFD.
std::string clean_utf8(std::string_view text);

/// At most `limit` bytes, cut at a character and with a note of how much was cut. What an earlier
/// cut left behind is cut further: the note then counts both.
std::string cut(std::string_view text, std::size_t limit);

/// `0s`, `500ms`, `30s`, `10m`, `2h`, `30d`. Nothing for other forms, negative values and what does
/// not fit.
std::optional<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration);

/// RFC 3339 with an offset; nothing for local times without one.
std::optional<WallTime> parse_time(std::string_view text);
/// `2026-11-02T08:30:00.000Z`
std::string format_time(WallTime);

/// Parses JSON up to a depth of nesting; invalid UTF-8 inside strings is replaced first. Nothing
/// when it is not JSON or too deep; `problem` (if given) says which and where.
std::optional<Json> parse_json(std::string_view text, int max_depth = 64,
                               std::string* problem = nullptr);

/// The same for values that something is done with: an integer beyond 64 bits, which would silently
/// become another number, is a problem too.
std::optional<Json> parse_exact_json(std::string_view text, int max_depth = 64,
                                     std::string* problem = nullptr);

/// The value; in place of what a store held and could not be parsed (`discarded`), an object that
/// says so.
Json readable_json(const Json&);

/// Compact text of a value; never throws (invalid UTF-8 is replaced). Always JSON.
std::string dump_json(const Json&);

/// The member of an object; null where there is none, or where the value is no object.
const Json* find_member(const Json& object, const char* key);

/// The text of a member; empty where there is none, or where it is no string.
std::string text_member(const Json& object, const char* key);

/// ASCII letters in lower case.
std::string lower_case(std::string_view text);

/// Lower-case hex of SHA-256.
std::string sha256_hex(std::string_view bytes);

/// The closest of the candidates, where one is close enough to be meant.
std::optional<std::string> did_you_mean(std::string_view word,
                                        const std::vector<std::string>& candidates);

}  // namespace holdfast
