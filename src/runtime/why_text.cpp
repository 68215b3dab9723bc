#include "runtime/why_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.hpp"

namespace holdfast {
namespace {

std::string join_failure(const std::string& cls, const std::string& code, const std::string& maker,
                         const std::string& message) {
  auto text = cls.empty() ? std::string("a failure") : cls;
  if (!code.empty()) text += fmt::format(" ({})", code);
  if (!maker.empty()) text += " from " + maker;
  if (!message.empty()) text += ": " + cut(message, 600);
  return text;
}

std::string maker_of(const std::string& provider, const std::string& model) {
  return provider.empty() || model.empty() ? provider : provider + "/" + model;
}

std::vector<Event>::const_iterator drive_begin(const std::vector<Event>& events) {
  const auto it = std::find_if(events.rbegin(), events.rend(), [](const Event& event) {
    return event.kind.is(EventKind::redriven) || event.kind.is(EventKind::resolved);
  });
  return it.base();
}

Json texts_of(const Event& event, std::initializer_list<const char*> keys) {
  Json one = {{"at", format_time(event.at)}, {"kind", event.kind.text()}};
  for (const auto* key : keys) {
    if (const auto text = text_at(event.payload, key); !text.empty()) one[key] = text;
  }
  return one;
}

}  // namespace

std::string spoken(Duration duration) {
  using namespace std::chrono;  // NOLINT(google-build-using-namespace)
  if (duration < std::chrono::seconds(1)) return fmt::format("{} ms", duration.count());
  if (duration < minutes(2))
    return fmt::format("{} s", floor<std::chrono::seconds>(duration).count());
  if (duration < hours(2)) return fmt::format("{} min", floor<minutes>(duration).count());
  if (duration < hours(48)) return fmt::format("{} h", floor<hours>(duration).count());
  return fmt::format("{} days", floor<days>(duration).count());
}

std::string moment(WallTime at, WallTime now) {
  if (at > now) return fmt::format("in {} ({})", spoken(at - now), format_time(at));
  return fmt::format("{} ago ({})", spoken(now - at), format_time(at));
}

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

std::string brief(const Json& value) { return cut(dump_json(value), 400); }

Json properties_of(const Json& schema) {
  if (!schema.is_object() || !schema.contains("properties")) return Json::object();
  const Json& properties = schema["properties"];
  return properties.is_object() ? properties : Json::object();
}

Json example_of(const Json& schema) {
  if (!schema.is_object()) return "…";
  if (const auto words = schema.find("enum"); words != schema.end() && !words->empty()) {
    return words->front();
  }
  const Json type = schema.value("type", Json());
  if (type == "integer" || type == "number") return schema.value("minimum", Json(0));
  if (type == "boolean") return true;
  if (type == "array") return Json::array();
  const Json values = example_values(schema);
  return type == "object" || !values.empty() ? values : Json("…");
}

Json example_values(const Json& schema) {
  // Values of which some will do say so by an example of their own.
  const Json* own = find_member(schema, "examples");
  if (own != nullptr && own->is_array() && !own->empty()) return own->front();
  Json values = Json::object();
  const Json properties = properties_of(schema);
  for (const auto& [name, of] : properties.items()) values[name] = example_of(of);
  return values;
}

std::string text_at(const Json& payload, const char* key) {
  const auto it = payload.is_object() ? payload.find(key) : payload.end();
  if (it == payload.end() || it->is_null()) return {};
  return it->is_string() ? it->get<std::string>() : dump_json(*it);
}

std::string failure_text(const Failure& failure) {
  return join_failure(std::string(to_word(failure.cls)), failure.code,
                      maker_of(failure.provider, failure.model), failure.message);
}

std::string failure_text(const Json& payload) {
  return join_failure(text_at(payload, "class"), text_at(payload, "code"),
                      maker_of(text_at(payload, "provider"), text_at(payload, "model")),
                      text_at(payload, "message"));
}

Json failures_of_drive(const std::vector<Event>& events) {
  auto all = Json::array();
  for (auto it = drive_begin(events); it != events.end(); ++it) {
    const bool is_failure = it->kind.is(EventKind::requeued) || it->kind.is(EventKind::parked) ||
                            it->kind.is(EventKind::failed);
    if (!is_failure) continue;
    all.push_back(texts_of(*it, {"class", "code", "message", "provider", "model"}));
  }
  return all;
}

Json reclaims_of_drive(const std::vector<Event>& events) {
  auto all = Json::array();
  for (auto it = drive_begin(events); it != events.end(); ++it) {
    if (it->kind.is(EventKind::reaped)) all.push_back(texts_of(*it, {"worker", "cause", "step"}));
  }
  return all;
}

Json last_step(const std::vector<Event>& events) {
  for (auto it = events.rbegin(); it != events.rend(); ++it) {
    const bool is_step = it->kind.is(EventKind::model) || it->kind.is(EventKind::tool) ||
                         it->kind.is(EventKind::step);
    if (is_step) return {{"key", text_at(it->payload, "key")}, {"at", format_time(it->at)}};
  }
  return nullptr;
}

}  // namespace holdfast
