#pragma once

// The generateContent dialect of Gemini: neutral history to request, answer to what it consists of.
// Pure.

#include <optional>
#include <string>
#include <variant>

#include "core/model.hpp"
#include "provider/answer.hpp"
#include "provider/own_parts.hpp"

namespace holdfast {

/// The request body. Equal history gives equal bytes.
std::string render_gemini_request(const Target&, const ModelRequest&);

/// Puts an answer together from one or more GenerateContentResponses.
class GeminiAssembler {
 public:
  /// Takes one response. Returns the text that it added.
  std::variant<std::string, Malformed> add(const Json& response);

  /// An end reason, or a blocked prompt, which has no candidate at all.
  bool has_end() const { return !finish_.empty() || !block_reason_.empty(); }

  /// The tokens were told with the end or behind it.
  bool is_over() const { return has_end() && has_last_usage_; }

  const ModelUsage& usage() const { return reply_.usage; }

  std::variant<RawReply, Malformed> finish() const;

 private:
  std::optional<Malformed> add_part(const Json& part, std::string* added);

  RawReply reply_;
  PartsWriter parts_;
  std::string finish_;
  std::string block_reason_;
  bool has_last_usage_ = false;
};

}  // namespace holdfast
