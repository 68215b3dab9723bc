#pragma once

// Ollama's own chat dialect: neutral history to request, answer to what it consists of. Pure.

#include <string>
#include <variant>

#include "core/model.hpp"
#include "provider/answer.hpp"

namespace holdfast {

/// The request body. Equal history gives equal bytes.
std::string render_ollama_request(const std::string& model, const ModelRequest&, bool stream);

/// Puts an answer together from one or more lines.
class OllamaAssembler {
 public:
  /// Takes one line. Returns the text that it added.
  std::variant<std::string, Malformed> add(const Json& line);

  bool has_end() const { return is_done_; }

  std::variant<RawReply, Malformed> finish() const;

 private:
  RawReply reply_;
  bool is_done_ = false;
};

}  // namespace holdfast
