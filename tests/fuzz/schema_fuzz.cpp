// A JSON Schema and a value, with a line of three dashes between them.

#include "core/json_schema.hpp"
#include "core/validate.hpp"
#include "fuzz/fuzz.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

/// Everything in `whole` that `part` has: filled in means added, never changed.
bool holds_all_of(const Json& whole, const Json& part) {
  if (part.is_object()) {
    if (!whole.is_object()) return false;
    for (const auto& [key, value] : part.items()) {
      if (!whole.contains(key) || !holds_all_of(whole[key], value)) return false;
    }
    return true;
  }
  if (part.is_array()) {
    if (!whole.is_array() || whole.size() != part.size()) return false;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!holds_all_of(whole[i], part[i])) return false;
    }
    return true;
  }
  return whole == part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const auto schema = parse_exact_json(fuzz::take_until(rest, "\n---\n"));
  const auto value = parse_exact_json(rest);
  if (!schema) return 0;
  const std::string problem = schema_problem(*schema);
  expect(fuzz::is_utf8(problem) && problem.size() < 4096, "a problem is a sentence", problem);
  if (!value) return 0;

  // Also of a schema that has a problem: an older build may have stored it.
  const auto errors = schema_errors(*schema, *value);
  expect(errors.size() <= 21, "the number of violations told is bounded");
  for (const std::string& error : errors) {
    expect(error.starts_with('/') && fuzz::contains(error, ": "), "a violation has its place",
           error);
    expect(error.size() < 4096, "a violation is a sentence", error);
  }
  expect(schema_errors(*schema, *value) == errors, "the same question has the same answer");
  const Json filled = with_defaults(*schema, *value);
  expect(holds_all_of(filled, *value), "defaults change nothing that is there", dump_json(filled));
  expect(with_defaults(*schema, *value) == filled, "what was approved is what runs");
  return 0;
}
