#include "provider/own_parts.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"
#include "provider/answer.hpp"

namespace holdfast {
namespace {

std::optional<OwnPart> read_part(const Json& json) {
  OwnPart part;
  const std::string kind = text_member(json, "kind");
  if (const Json* value = find_member(json, "value")) part.value = *value;
  if (kind == "own") return part;
  if (kind == "call") {
    part.kind = OwnPart::Kind::call;
    return part;
  }
  if (kind != "text") return std::nullopt;
  part.kind = OwnPart::Kind::text;
  part.bytes = static_cast<std::size_t>(token_count(json, "bytes"));
  return part;
}

Json to_json(const OwnPart& part) {
  Json json = Json::object();
  switch (part.kind) {
    case OwnPart::Kind::own:
      json["kind"] = "own";
      break;
    case OwnPart::Kind::text:
      json["kind"] = "text";
      json["bytes"] = part.bytes;
      break;
    case OwnPart::Kind::call:
      json["kind"] = "call";
      break;
  }
  if (!part.value.is_null()) json["value"] = part.value;
  return json;
}

}  // namespace

void PartsWriter::add_own(Json part) { parts_.push_back({OwnPart::Kind::own, std::move(part), 0}); }

void PartsWriter::add_text(std::size_t bytes, Json with) {
  // Texts that stand beside each other with nothing to themselves are one.
  if (with.is_null() && !parts_.empty() && parts_.back().kind == OwnPart::Kind::text &&
      parts_.back().value.is_null()) {
    parts_.back().bytes += bytes;
  } else {
    parts_.push_back({OwnPart::Kind::text, std::move(with), bytes});
  }
}

void PartsWriter::add_call(Json with) {
  parts_.push_back({OwnPart::Kind::call, std::move(with), 0});
}

Json PartsWriter::kept(const std::string& dialect) const {
  const bool is_plain =
      std::all_of(parts_.begin(), parts_.end(), [](const OwnPart& p) { return p.value.is_null(); });
  if (is_plain) return nullptr;
  Json list = Json::array();
  for (const OwnPart& part : parts_) list.push_back(to_json(part));
  return {{"dialect", dialect}, {"parts", std::move(list)}};
}

std::optional<std::vector<OwnPart>> own_parts(const Message& message, const std::string& dialect,
                                              const Target& target) {
  if (text_member(message.opaque, "dialect") != dialect) return std::nullopt;
  if (!HOLDFAST_GUARD("own_parts_to_maker", message.made_by == target.text())) return std::nullopt;
  const Json* list = find_member(message.opaque, "parts");
  if (list == nullptr || !list->is_array()) return std::nullopt;
  std::vector<OwnPart> parts;
  std::size_t bytes = 0;
  std::size_t calls = 0;
  for (const Json& json : *list) {
    auto part = read_part(json);
    if (!part) return std::nullopt;
    if (part->kind == OwnPart::Kind::call) ++calls;
    if (part->bytes > message.text.size() - bytes) return std::nullopt;
    bytes += part->bytes;
    parts.push_back(std::move(*part));
  }
  if (bytes != message.text.size() || calls != message.calls.size()) return std::nullopt;
  return parts;
}

}  // namespace holdfast
