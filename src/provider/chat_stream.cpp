#include "provider/chat_stream.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kMaxCalls = 1000;
constexpr std::int64_t kMaxIndex = 1000000;

/// A call whose arguments are whole: nothing more can belong to it.
bool is_whole(const RawCall& call) {
  return !call.name.empty() && extent_of(call.arguments) == JsonExtent::complete;
}

}  // namespace

std::variant<std::string, Malformed> ChatAssembler::add(const Json& chunk) {
  if (!chunk.is_object()) return Malformed{std::string("a chunk is ") + chunk.type_name()};
  if (const Json* usage = find_given(chunk, "usage")) reply_.usage = read_chat_usage(*usage);
  if (const Json* filter = find_given(chunk, "prompt_filter_results")) filter_ = *filter;
  const Json* choices = find_given(chunk, "choices");
  if (choices == nullptr) return std::string();
  if (!choices->is_array()) {
    return Malformed{std::string("a chunk's choices is ") + choices->type_name()};
  }
  std::string added;
  for (const Json& choice : *choices) {
    if (!choice.is_object()) return Malformed{"a chunk's choice is no object"};
    const Json* index = find_given(choice, "index");
    if (index != nullptr && *index != 0) continue;  // one answer was asked for
    if (const Json* delta = find_given(choice, "delta")) {
      if (!delta->is_object()) return Malformed{"a chunk's delta is no object"};
      if (const Json* content = find_given(*delta, "content")) {
        auto text = read_content(*content);
        if (!text) return Malformed{"a chunk's content is no text"};
        added += *text;
      }
      if (!text_member(*delta, "refusal").empty()) reply_.has_refusal = true;
      if (const Json* calls = find_given(*delta, "tool_calls")) {
        if (!calls->is_array()) return Malformed{"a chunk's tool_calls is no list"};
        for (const Json& call : *calls) {
          if (auto malformed = add_call(call)) return *malformed;
        }
      }
      if (const Json* call = find_given(*delta, "function_call")) {
        if (auto malformed = add_call(Json{{"index", 0}, {"function", *call}})) return *malformed;
      }
    }
    const std::string finish = text_member(choice, "finish_reason");
    if (!finish.empty()) reply_.finish = finish;
  }
  reply_.text += added;
  return added;
}

ChatAssembler::Slot* ChatAssembler::find_slot(std::optional<std::int64_t> index,
                                              const std::string& id) {
  // The newest one first: where a server reuses an index, pieces belong to its last call.
  for (auto slot = slots_.rbegin(); slot != slots_.rend(); ++slot) {
    if (index ? slot->index == *index : slot->call.id == id) return &*slot;
  }
  return nullptr;
}

std::optional<Malformed> ChatAssembler::add_call(const Json& delta) {
  if (!delta.is_object()) return Malformed{"a streamed tool call is no object"};
  const Json* function = find_given(delta, "function");
  if (function != nullptr && !function->is_object()) {
    return Malformed{"a streamed tool call's function is no object"};
  }
  const std::string id = text_member(delta, "id");
  const std::string name = function != nullptr ? text_member(*function, "name") : std::string();
  const Json* arguments = function != nullptr ? find_given(*function, "arguments") : nullptr;

  std::optional<std::int64_t> index;
  if (const Json* given = find_given(delta, "index")) {
    if (!given->is_number_integer() || *given < 0 || *given > kMaxIndex) {
      return Malformed{"a streamed tool call's index is " + cut(dump_json(*given), 40)};
    }
    index = given->get<std::int64_t>();
  }

  Slot* slot = nullptr;
  if (index || !id.empty()) {
    slot = find_slot(index, id);
  } else if (slots_.size() == 1) {
    slot = &slots_.front();
  } else if (!slots_.empty()) {
    return Malformed{"a streamed piece of a tool call names neither index nor id"};
  }

  const bool is_another =
      slot != nullptr && !id.empty() && !slot->call.id.empty() && slot->call.id != id;
  if (is_another) {
    // The index is reused. An id seen before is a piece for an older call; a new one starts a call,
    // which is certain only once the call before is whole.
    if (Slot* older = find_slot(std::nullopt, id); older != nullptr) {
      slot = older;
    } else if (is_whole(slot->call) || slot->call.arguments.empty()) {
      if (name.empty()) return Malformed{"two streamed tool calls share an index"};
      slot = nullptr;
    } else {
      return Malformed{"two streamed tool calls share an index while the first is open"};
    }
  }
  if (slot == nullptr) {
    if (slots_.size() >= kMaxCalls) return Malformed{"more tool calls than can be meant"};
    const auto place = static_cast<std::int64_t>(slots_.size());
    slots_.push_back(Slot{index.value_or(place), RawCall{id, {}, {}}});
    slot = &slots_.back();
  }
  if (Json own = own_members(delta); !own.is_null()) slot->call.own = std::move(own);
  return extend(slot, id, name, arguments);
}

std::optional<Malformed> ChatAssembler::extend(Slot* slot, const std::string& id,
                                               const std::string& name, const Json* arguments) {
  if (!name.empty()) {
    const bool is_repeated_head = !id.empty() && slot->call.id == id && slot->call.name == name;
    if (!slot->call.name.empty() && !is_repeated_head) {
      return Malformed{"a streamed tool call is named twice: " + cut(slot->call.name, 64) +
                       " and " + cut(name, 64)};
    }
    slot->call.name = name;
  }
  if (slot->call.id.empty()) slot->call.id = id;
  if (arguments == nullptr) return std::nullopt;
  if (arguments->is_string()) {
    slot->call.arguments += arguments->get_ref<const std::string&>();
    return std::nullopt;
  }
  if (arguments->is_object() && slot->call.arguments.empty()) {
    slot->call.arguments = dump_json(*arguments);
    slot->call.is_rounded = holds_rounded(*arguments);
    return std::nullopt;
  }
  return Malformed{std::string("streamed arguments are ") + arguments->type_name()};
}

std::variant<RawReply, Malformed> ChatAssembler::finish() const {
  RawReply out = reply_;
  std::vector<Slot> slots = slots_;
  std::stable_sort(slots.begin(), slots.end(),
                   [](const Slot& a, const Slot& b) { return a.index < b.index; });
  for (Slot& slot : slots) {
    if (slot.call.name.empty()) return Malformed{"a streamed tool call has no name"};
    // Two objects in one text are two calls that were glued together.
    if (!HOLDFAST_GUARD("calls_not_merged",
                        extent_of(slot.call.arguments) != JsonExtent::trailing)) {
      return Malformed{"streamed arguments of " + cut(slot.call.name, 64) +
                       " go on behind their end"};
    }
    out.calls.push_back(std::move(slot.call));
  }
  out.opaque = kept_of_chat(out);
  return out;
}

}  // namespace holdfast
