#include "engine/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/guard.hpp"
#include "base/text.hpp"

namespace holdfast {
namespace {

[[noreturn]] void throw_configuration(std::string code, std::string message) {
  Failure failure;
  failure.cls = FailureClass::configuration;
  failure.code = std::move(code);
  failure.message = std::move(message);
  throw FailureError(std::move(failure));
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<Verdict> verdict_of(EventKind kind) {
  if (kind == EventKind::approved) return Verdict::approved;
  if (kind == EventKind::denied) return Verdict::denied;
  if (kind == EventKind::expired) return Verdict::expired;
  return std::nullopt;
}

/// When a sleep is over. Older journals hold milliseconds since 1970.
std::optional<WallTime> due_time_of(const Json& payload) {
  const Json* until = find_member(payload, "until");
  if (until != nullptr && until->is_number_integer()) {
    return WallTime(Duration(until->get<std::int64_t>()));
  }
  return parse_time(text_at(payload, "until"));
}

/// Does a decision's event cover this call? Without a list it covers the whole turn.
bool covers(const Event& event, const std::string& call) {
  const auto calls = event.payload.find("calls");
  if (calls == event.payload.end() || !calls->is_array()) return true;
  return std::any_of(calls->begin(), calls->end(), [&](const Json& entry) {
    return entry.is_string() ? entry == call : text_at(entry, "id") == call;
  });
}

}  // namespace

bool is_automatic_key(std::string_view key, std::string_view name) {
  if (key.size() < name.size() + 2 || !key.starts_with(name) || key[name.size()] != '#') {
    return false;
  }
  const std::string_view number = key.substr(name.size() + 1);
  return std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Replay::Replay(const std::vector<Event>& events) {
  for (const Event& event : events) {
    const auto kind = event.kind.known();
    if (!kind) continue;
    count(event, *kind);
    switch (*kind) {
      case EventKind::model:
      case EventKind::tool:
      case EventKind::step:
        add_step(event);
        newest_step_ = event.sequence;
        break;
      case EventKind::slept:
        add_sleep(event);
        break;
      case EventKind::woken:
        if (!steps_.empty() && steps_.back().is_sleep) steps_.back().woken = true;
        break;
      case EventKind::approved:
      case EventKind::denied:
      case EventKind::input_submitted:
      case EventKind::expired:
        decisions_.push_back(event);
        break;
      case EventKind::redriven:
        newest_redrive_ = event.sequence;
        break;
      case EventKind::started:
      case EventKind::claimed:
        claimed_at_ = event.at;
        break;
      case EventKind::queued:
      case EventKind::approval_requested:
      case EventKind::input_requested:
      case EventKind::requeued:
      case EventKind::parked:
      case EventKind::released:
      case EventKind::reaped:
      case EventKind::probed:
      case EventKind::handed_over:
      case EventKind::cancelled:
      case EventKind::resolved:
      case EventKind::completed:
      case EventKind::failed:
        break;
    }
  }
}

void Replay::count(const Event& event, EventKind kind) {
  const auto is_one_of = [kind](std::initializer_list<EventKind> kinds) {
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  };
  using enum EventKind;
  if (is_one_of({redriven, resolved})) {
    drive_ = Drive{};
    drive_.earlier_model_calls = model_calls_;
  }
  if (is_one_of({started, claimed}) && !drive_.begun_at) drive_.begun_at = event.at;
  if (kind == model) ++model_calls_;
  if (kind == tool) ++drive_.tool_calls;
  if (is_one_of({approval_requested, input_requested})) waits_since_ = event.at;
  const bool is_answer = is_one_of({approved, denied, input_submitted, expired});
  if (is_answer && waits_since_) {
    // Of several answers to one question each ends a part of the wait.
    drive_.waited += std::max(Duration::zero(), event.at - *waits_since_);
    waits_since_ = event.at;
  }
}

bool Replay::holds(std::string_view name, const std::string& own_key) const {
  if (!own_key.empty()) return by_key_.contains(own_key);
  const auto number = numbers_.find(std::string(name));
  return by_key_.contains(
      fmt::format("{}#{}", name, (number == numbers_.end() ? 0 : number->second) + 1));
}

void Replay::add_step(const Event& event) {
  RecordedStep step;
  step.key = text_at(event.payload, "key");
  if (step.key.empty() || by_key_.contains(step.key)) return;
  step.name = text_at(event.payload, "name");
  step.result = result_of(*event.kind.known(), event.payload);
  by_key_.emplace(step.key, steps_.size());
  steps_.push_back(std::move(step));
}

void Replay::add_sleep(const Event& event) {
  const std::string key = text_at(event.payload, "key");
  // Without a key it is the wait for a probe: no step of the handler.
  if (key.empty()) return;
  const auto until = due_time_of(event.payload);
  if (!until) return;
  const auto known = by_key_.find(key);
  if (known == by_key_.end()) {
    by_key_.emplace(key, steps_.size());
    RecordedStep step;
    step.key = key;
    step.name = text_at(event.payload, "name");
    step.is_sleep = true;
    steps_.push_back(std::move(step));
  }
  RecordedStep& step = steps_[by_key_.at(key)];
  step.until = *until;
}

std::string Replay::next_key(std::string_view name, const std::string& own_key) {
  std::string key = own_key;
  if (key.empty()) key = fmt::format("{}#{}", name, ++numbers_[std::string(name)]);
  if (!used_.insert(key).second) {
    throw_configuration(
        "step_key_reused",
        fmt::format("two steps have the key \"{}\"; give each step of the run a key "
                    "of its own",
                    key));
  }
  return key;
}

const RecordedStep* Replay::take(const std::string& key, std::string_view name, bool has_own_key,
                                 bool is_sleep) {
  while (cursor_ < steps_.size() && steps_[cursor_].taken) ++cursor_;
  const auto found = by_key_.find(key);
  RecordedStep* step = found == by_key_.end() ? nullptr : &steps_[found->second];
  const bool is_at_cursor = step != nullptr && found->second == cursor_;
  // Steps with keys of their own (the calls of one turn) may be recorded in any order among
  // themselves; all others stand at the cursor, and nothing recorded is passed over.
  const bool matches = step != nullptr && step->name == name && step->is_sleep == is_sleep &&
                       (has_own_key || is_at_cursor);
  if (matches) {
    step->taken = true;
    return step;
  }
  const RecordedStep* other = step;
  if (other == nullptr) {
    for (std::size_t i = cursor_; i < steps_.size() && other == nullptr; ++i) {
      const RecordedStep& open = steps_[i];
      if (!open.taken && (!has_own_key || is_automatic_key(open.key, open.name))) other = &open;
    }
  } else if (!is_at_cursor && cursor_ < steps_.size()) {
    other = &steps_[cursor_];
  }
  if (HOLDFAST_GUARD("journal_order", other == nullptr)) return nullptr;
  throw_configuration(
      "journal_mismatch",
      fmt::format("the run's journal has step \"{}\" ({}) where the task now asks for \"{}\" ({}); "
                  "run it with the code that it began with, or start a new run",
                  other->name, other->key, name, key));
}

Answers Replay::find_answers(const std::string& turn, const std::vector<GatedCall>& calls) const {
  Answers answers;
  answers.verdicts.resize(calls.size());
  for (const Event& event : decisions_) {
    if (text_at(event.payload, "turn") != turn) continue;
    const EventKind kind = *event.kind.known();
    const bool is_refusal = kind == EventKind::denied || kind == EventKind::expired;
    // A redrive asks a refusal again, unless the run went on behind it.
    const bool is_behind = event.sequence < newest_step_;
    if (is_refusal && event.sequence < newest_redrive_ && !is_behind) continue;
    if (kind == EventKind::input_submitted) {
      answers.values = event.payload.value("values", Json());
    }
    answers.expired = kind == EventKind::expired;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      // The newest word counts: within a drive a call is decided once, and a redrive asks anew.
      if (const auto verdict = verdict_of(kind); verdict && covers(event, calls[i].id)) {
        answers.verdicts[i] = verdict;
      }
    }
    answers.actor = text_at(event.payload, "actor");
    answers.note = text_at(event.payload, "note");
  }
  return answers;
}

Json step_payload(StepKind kind, const std::string& name, const std::string& key, Effect effect,
                  const Json& arguments, const Json& result) {
  if (kind == StepKind::model) {
    const bool merges = result.is_object() && !result.contains("name") && !result.contains("key") &&
                        !result.contains("result");
    Json payload = merges ? result : Json::object({{"result", result}});
    payload["name"] = name;
    payload["key"] = key;
    return payload;
  }
  return {{"name", name},
          {"key", key},
          {"effect", to_word(effect)},
          {"arguments", arguments},
          {"result", result}};
}

Json result_of(EventKind kind, const Json& payload) {
  if (!payload.is_object()) return {};
  if (const auto result = payload.find("result"); result != payload.end()) return *result;
  if (kind != EventKind::model) return {};
  Json result = payload;
  result.erase("name");
  result.erase("key");
  return result;
}

std::string turn_digest(const RunId& run, const Question& question) {
  Json calls = Json::array();
  for (const GatedCall& call : question.calls) {
    calls.push_back({{"id", call.id}, {"name", call.name}, {"arguments", call.arguments}});
  }
  Json turn = {{"run", run},
               {"kind", question.kind == WaitKind::approval ? "approval" : "input"},
               {"key", question.key},
               {"calls", std::move(calls)}};
  if (question.schema_counts) turn["schema"] = question.schema;
  if (!question.terms.empty()) turn["terms"] = question.terms;
  // Half of it is short enough to be typed and long enough to be unique.
  return sha256_hex(dump_json(turn)).substr(0, 32);
}

}  // namespace holdfast
