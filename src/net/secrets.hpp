#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/model.hpp"

namespace holdfast {

/// The keys of the configured providers, to be kept out of whatever a server sends: a server can
/// repeat what it was sent, and what it sends is stored and shown. Immutable: any thread.
class Secrets {
 public:
  /// The keys as they stand in these environment variables now.
  explicit Secrets(const std::vector<std::string>& names);

  /// A body as it came, before anything is read or cut from it: keys as they are, escaped as JSON
  /// (also twice, as in the arguments of a call), and as base64. Keys below 8 characters are left
  /// in it: they can be words of its format.
  std::string redact_body(std::string body) const;

  /// A text for people or models: all that, and shorter keys where they stand as whole words.
  std::string redact_text(std::string text) const;

  /// Every text of an answer, however its parts came or were escaped.
  void redact(ModelReply&) const;

 private:
  std::vector<std::string> forms_;   ///< the longest first
  std::vector<std::string> base64_;  ///< what every base64 text that holds a key has in it
  std::vector<std::string> words_;   ///< short keys
};

}  // namespace holdfast
