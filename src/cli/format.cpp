#include "cli/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace holdfast {
namespace {

constexpr std::size_t kWide = 100;
constexpr std::size_t kNarrow = 60;

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return "";
  return shorten_json(*found, kWide);
}

std::string labelled(std::string_view label, const std::string& text) {
  return text.empty() ? "" : fmt::format(" {}{}", label, text);
}

std::string model_text(const Json& payload) {
  std::string text = text_at(payload, "provider");
  if (const auto model = text_at(payload, "model"); !model.empty()) text += "/" + model;
  if (const auto usage = payload.find("usage"); usage != payload.end() && usage->is_object()) {
    text += labelled("", text_at(*usage, "total_tokens"));
    if (usage->contains("total_tokens")) text += " tokens";
  }
  if (const auto calls = payload.find("calls"); calls != payload.end() && calls->is_array()) {
    for (const auto& call : *calls) {
      if (!call.is_object()) continue;
      text +=
          fmt::format(" → {}({})", text_at(call, "name"),
                      call.contains("arguments") ? shorten_json(call["arguments"], kNarrow) : "");
    }
  }
  return text + labelled("", text_at(payload, "text"));
}

std::string step_text(const Json& payload) {
  auto text = text_at(payload, "key");
  if (text.empty()) text = text_at(payload, "name");
  const auto effect = text_at(payload, "effect");
  if (!effect.empty() && effect != to_word(Effect::read)) text += fmt::format(" ({})", effect);
  if (const auto arguments = payload.find("arguments");
      arguments != payload.end() && !arguments->is_null()) {
    text += " " + shorten_json(*arguments, kNarrow);
  }
  if (payload.contains("error") && !payload["error"].is_null()) {
    return text + " → error: " + text_at(payload, "error");
  }
  return payload.contains("result") ? text + " → " + text_at(payload, "result") : text;
}

std::string failure_text(const Json& payload) {
  auto text = text_at(payload, "class");
  if (const auto code = text_at(payload, "code"); !code.empty()) text += fmt::format(" {}", code);
  if (const auto message = text_at(payload, "message"); !message.empty()) {
    text += fmt::format("{}{}", text.empty() ? "" : ": ", message);
  }
  text += labelled("reason ", text_at(payload, "reason"));
  if (const auto charged = payload.find("charged");
      charged != payload.end() && charged->is_boolean() && !charged->get<bool>()) {
    text += " (not charged)";
  }
  return text + labelled("until ", text_at(payload, "available_at"));
}

std::string reaped_text(const Json& payload) {
  auto text = fmt::format("worker {} lost", text_at(payload, "worker"));
  text += labelled("by ", text_at(payload, "cause"));
  text += labelled("at step ", text_at(payload, "step"));
  return text + labelled("→ failed ", text_at(payload, "reason"));
}

std::string decision_text(const Json& payload) {
  auto text = text_at(payload, "actor");
  if (!text.empty()) text = "by " + text;
  text += labelled("call ", text_at(payload, "call"));
  return text + labelled("note: ", text_at(payload, "note"));
}

/// Payloads without a shape of their own: what they hold.
std::string other_text(const Json& payload) {
  if (payload.is_null() || payload.empty()) return "";
  return shorten_json(payload, kWide);
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

}  // namespace

Colour colour_of(const Word<Status>& status) {
  const auto known = status.known();
  if (!known) return Colour::none;
  switch (*known) {
    case Status::queued:
      return Colour::none;
    case Status::running:
      return Colour::blue;
    case Status::waiting_for_approval:
    case Status::waiting_for_input:
      return Colour::yellow;
    case Status::completed:
      return Colour::green;
    case Status::failed:
      return Colour::red;
    case Status::cancelled:
      return Colour::dim;
  }
  return Colour::none;
}

std::string state_line(const Run& run) {
  auto line = fmt::format("{} {}", safe_line(run.id), safe_line(run.status.text()));
  if (run.reason && run.reason->text() != run.status.text()) {
    line += fmt::format(" ({})", safe_line(run.reason->text()));
  }
  return line;
}

std::string event_text(const Event& event) {
  const auto known = event.kind.known();
  const auto& payload = event.payload;
  if (!known || !payload.is_object()) return other_text(payload);
  switch (*known) {
    case EventKind::model:
      return model_text(payload);
    case EventKind::tool:
    case EventKind::step:
      return step_text(payload);
    case EventKind::claimed:
    case EventKind::started: {
      const auto worker = text_at(payload, "worker");
      return worker.empty() ? other_text(payload) : "by " + worker;
    }
    case EventKind::requeued:
    case EventKind::parked:
    case EventKind::failed:
      return trimmed(failure_text(payload));
    case EventKind::reaped:
      return reaped_text(payload);
    case EventKind::approved:
    case EventKind::denied:
    case EventKind::input_submitted:
    case EventKind::cancelled:
    case EventKind::redriven:
    case EventKind::handed_over:
    case EventKind::woken: {
      const auto text = trimmed(decision_text(payload));
      return text.empty() ? other_text(payload) : text;
    }
    case EventKind::queued:
    case EventKind::slept:
    case EventKind::approval_requested:
    case EventKind::input_requested:
    case EventKind::expired:
    case EventKind::released:
    case EventKind::probed:
    case EventKind::resolved:
      return other_text(payload);
    case EventKind::completed: {
      const auto answer = text_at(payload, "answer");
      if (text_at(payload, "finish") == "length") return answer + " (cut at the token limit)";
      return answer.empty() ? other_text(payload) : answer;
    }
  }
  return other_text(payload);
}

std::string event_line(const Event& event, const Output& out) {
  const auto kind = safe_line(event.kind.text());
  const auto known = event.kind.known();
  auto colour = Colour::bold;
  if (known == EventKind::failed || known == EventKind::reaped) colour = Colour::red;
  if (known == EventKind::completed) colour = Colour::green;
  if (known == EventKind::requeued || known == EventKind::parked) colour = Colour::yellow;
  return fmt::format("{:>4} {} {} {}", event.sequence,
                     out.paint(Colour::dim, format_time(event.at)), out.paint(colour, kind),
                     event_text(event));
}

std::string answer_text(const Json& answer) {
  return answer.is_string() ? answer.get<std::string>() : dump_json(answer);
}

std::string age_text(Duration age) {
  using Unit = std::pair<std::int64_t, const char*>;
  constexpr std::array<Unit, 4> kUnits = {
      {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1'000, "s"}}};
  auto rest = std::max<std::int64_t>(age.count(), 0);
  if (rest < 1000) return fmt::format("{}ms", rest);
  std::string text;
  int parts = 0;
  for (const auto& [length, name] : kUnits) {
    if (rest < length && parts == 0) continue;
    if (parts == 2) break;
    if (rest >= length) text += fmt::format("{}{}{}", text.empty() ? "" : " ", rest / length, name);
    rest %= length;
    ++parts;
  }
  return text;
}

}  // namespace holdfast
