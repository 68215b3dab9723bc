#include "agent/answer_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "core/validate.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kShownAnswerBytes = 200;
constexpr std::string_view kFence = "```";

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlank = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
  text.remove_prefix(begin);
  const std::size_t end = text.find_last_not_of(kBlank);
  return text.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

/// What stands between the fences of a text that is nothing but a fenced block.
std::string_view without_fences(std::string_view text) {
  text = trimmed(text);
  const std::size_t line_end = text.find('\n');
  const bool is_fenced = text.size() > 2 * kFence.size() && text.starts_with(kFence) &&
                         text.ends_with(kFence) && line_end != std::string_view::npos;
  if (!is_fenced) return text;
  text.remove_suffix(kFence.size());
  text.remove_prefix(std::min(line_end + 1, text.size()));
  return trimmed(text);
}

}  // namespace

std::optional<Json> value_of_answer(const std::string& text, int max_depth, std::string* problem) {
  const std::string_view inner = without_fences(text);
  if (inner.empty()) {
    *problem = "it is empty";
    return std::nullopt;
  }
  std::string where;
  auto value = parse_exact_json(inner, max_depth, &where);
  if (!value) *problem = "it is not one JSON value" + (where.empty() ? "" : ": " + where);
  return value;
}

std::string AnswerCheck::instruction() const {
  return "When you are done, answer with one JSON value that meets this JSON Schema, and with "
         "nothing around it: " +
         dump_json(schema_);
}

std::variant<Json, AnswerCheck::Mend> AnswerCheck::read(const Turn& turn) {
  std::string problem;
  std::optional<Json> value = value_of_answer(turn.text, limits_.depth, &problem);
  if (value) problem = fmt::format("{}", fmt::join(schema_errors(schema_, *value), "; "));
  if (value && HOLDFAST_GUARD("agent_answer_fits", problem.empty())) return std::move(*value);
  if (turn.finish == "length") problem = "it was cut at the token limit; " + problem;
  problem = cut(problem, limits_.error_bytes);
  // Answers of an earlier drive were judged by it.
  const bool is_of_this_drive = turn.number > context_.spent().earlier_model_calls;
  if (is_of_this_drive && !HOLDFAST_GUARD("agent_answer_mended_once", ++failed_ <= 1)) {
    fail_configuration(
        "answer_schema",
        cut(fmt::format("the model's answer does not meet the agent's answer_schema, also after it "
                        "was told so: {}; give the agent another model, or a schema that this one "
                        "can meet, then redrive. It answered: {}",
                        problem, cut(turn.text, kShownAnswerBytes)),
            limits_.error_bytes));
  }
  return Mend{fmt::format(
      "Your answer does not meet the JSON Schema that it must meet: {}. Answer again with one JSON "
      "value that meets it, and with nothing around it.",
      problem)};
}

}  // namespace holdfast
