// The context windows that are known without being told, and what of them a request may take.

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "provider/providers.hpp"

namespace holdfast {
namespace {

struct Known {
  std::string_view beginning;  ///< of a model's name, without what a router puts before it
  std::int64_t tokens;
};

/// As their makers publish them; of two that fit, the longer beginning counts. A model that serves
/// several windows stands here with the one that it has unasked.
constexpr std::array kKnown = {Known{"gpt-3.5-turbo", 16385},
                               Known{"gpt-4", 8192},
                               Known{"gpt-4-turbo", 128000},
                               Known{"gpt-4o", 128000},
                               Known{"gpt-4.1", 1047576},
                               Known{"gpt-5", 400000},
                               Known{"gpt-5-chat", 128000},
                               Known{"chatgpt-4o", 128000},
                               Known{"o1", 200000},
                               Known{"o1-mini", 128000},
                               Known{"o3", 200000},
                               Known{"o4-mini", 200000},
                               Known{"claude-", 200000},
                               Known{"gemini-1.5-pro", 2097152},
                               Known{"gemini-1.5", 1048576},
                               Known{"gemini-2", 1048576},
                               Known{"gemini-3", 1048576},
                               Known{"mistral-large", 128000},
                               Known{"mistral-small", 128000},
                               Known{"llama-3.1", 131072},
                               Known{"llama-3.3", 131072},
                               Known{"deepseek-chat", 128000},
                               Known{"deepseek-reasoner", 128000}};

std::optional<std::int64_t> known_window(const std::string& model) {
  // `vendor/model` of routers, `models/model` of Gemini.
  const std::string name = lower_case(model.substr(model.rfind('/') + 1));
  const Known* best = nullptr;
  for (const Known& known : kKnown) {
    if (!name.starts_with(known.beginning)) continue;
    // `o1` is not the beginning of `o10`.
    const bool ends_word = known.beginning.back() == '-' || name.size() == known.beginning.size() ||
                           !std::isdigit(static_cast<unsigned char>(name[known.beginning.size()]));
    if (!ends_word) continue;
    if (best == nullptr || known.beginning.size() > best->beginning.size()) best = &known;
  }
  if (best == nullptr) return std::nullopt;
  return best->tokens;
}

}  // namespace

std::optional<std::int64_t> request_room(const ProviderSpec& spec, const std::string& model) {
  std::optional<std::int64_t> window;
  if (const auto told = spec.context_window.find(model); told != spec.context_window.end()) {
    window = told->second;
  } else if (spec.kind != "ollama" && spec.kind != "scripted") {
    // Ollama runs each model with the window that its server was set up for.
    window = known_window(model);
  }
  if (!window) return std::nullopt;
  // The answer needs room in it as well; Messages refuses a request that leaves less than it asks
  // for.
  std::int64_t answer = *window / 10;
  if (spec.kind == "anthropic") answer = std::max<std::int64_t>(answer, spec.max_tokens);
  return *window - std::min(answer, *window / 2);
}

}  // namespace holdfast
