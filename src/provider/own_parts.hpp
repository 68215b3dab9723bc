#pragma once

// The parts of an answer that only their maker can read (reasoning items, signed thoughts), and
// where they stood among its texts and calls. Kept with the recorded reply, value for value, and
// sent back only to the provider and model that made them, in the order in which they came. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/model.hpp"

namespace holdfast {

/// Who is asked, and who made an answer.
struct Target {
  std::string provider;
  std::string model;

  std::string text() const { return provider + "/" + model; }
};

/// One part of an answer, in its order.
struct OwnPart {
  enum class Kind {
    own,   ///< a part that is sent back as it came: `value`
    text,  ///< the next `bytes` of the answer's text
    call   ///< the answer's next call
  } kind = Kind::own;
  Json value;  ///< own: the part; text and call: its maker's members beside ours, or null
  std::size_t bytes = 0;  ///< text
};

/// Notes the parts of an answer in their order.
class PartsWriter {
 public:
  void add_own(Json part);
  /// `with`: what its maker wants to see again beside the text; null: nothing.
  void add_text(std::size_t bytes, Json with = nullptr);
  void add_call(Json with = nullptr);

  /// What is to be kept under this dialect's name; null where all of it is in the neutral reply.
  Json kept(const std::string& dialect) const;

 private:
  std::vector<OwnPart> parts_;
};

/// The parts of an assistant's message where this dialect and target made it and they still fit its
/// text and calls; nothing otherwise: then the neutral message alone is sent.
std::optional<std::vector<OwnPart>> own_parts(const Message&, const std::string& dialect,
                                              const Target&);

}  // namespace holdfast
