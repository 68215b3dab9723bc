#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "provider/chat_wire.hpp"

namespace holdfast {

/// Puts a streamed Chat Completions answer together. Calls are kept apart by their index, and by
/// their id where a server reuses the index; what cannot be told apart for certain is malformed,
/// never merged. Pure.
class ChatAssembler {
 public:
  /// Takes one chunk. Returns the text that it added; Malformed ends the answer.
  std::variant<std::string, Malformed> add(const Json& chunk);

  bool has_finish() const { return !reply_.finish.empty(); }

  /// The whole answer, once the stream has ended with its finish reason.
  std::variant<RawReply, Malformed> finish() const;

  /// As the last chunk that spoke of it said.
  const ModelUsage& usage() const { return reply_.usage; }

  /// The prompt or the answer was filtered, as the chunks said beside the choices.
  const Json& filter_results() const { return filter_; }

 private:
  struct Slot {
    std::int64_t index;
    RawCall call;
  };

  std::optional<Malformed> add_call(const Json& delta);
  std::optional<Malformed> extend(Slot* slot, const std::string& id, const std::string& name,
                                  const Json* arguments);
  Slot* find_slot(std::optional<std::int64_t> index, const std::string& id);

  RawReply reply_;
  std::vector<Slot> slots_;  ///< in the order of their first appearance
  Json filter_;
};

}  // namespace holdfast
