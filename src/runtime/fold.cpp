#include "runtime/fold.hpp"

#include <fmt/core.h>

#include <utility>

#include "base/text.hpp"
#include "core/run_codec.hpp"

namespace holdfast {
namespace {

bool has(const Json& payload, const char* key) {
  return payload.is_object() && payload.contains(key) && !payload[key].is_null();
}

std::string text_of(const Json& payload, const char* key) {
  return has(payload, key) && payload[key].is_string() ? payload[key].get<std::string>()
                                                       : std::string();
}

bool is_decision(std::optional<EventKind> kind) {
  return kind == EventKind::approved || kind == EventKind::denied ||
         kind == EventKind::input_submitted;
}

bool is_step(EventKind kind) {
  return kind == EventKind::model || kind == EventKind::tool || kind == EventKind::step;
}

/// When a run that this event puts on the queue is due: the time it names, else at once.
WallTime due_time_of(const Event& event) {
  return parse_time(text_of(event.payload, "available_at")).value_or(event.at);
}

/// Written by who holds the run, in the name of the claim it holds.
bool is_of_a_segment(EventKind kind) {
  switch (kind) {
    case EventKind::model:
    case EventKind::tool:
    case EventKind::step:
    case EventKind::slept:
    case EventKind::probed:
    case EventKind::approval_requested:
    case EventKind::input_requested:
    case EventKind::requeued:
    case EventKind::parked:
    case EventKind::released:
    case EventKind::reaped:
    case EventKind::handed_over:
    case EventKind::completed:
      return true;
    case EventKind::queued:
    case EventKind::started:
    case EventKind::claimed:
    case EventKind::approved:
    case EventKind::denied:
    case EventKind::input_submitted:
    case EventKind::expired:
    case EventKind::woken:
    case EventKind::cancelled:
    case EventKind::redriven:
    case EventKind::resolved:
    case EventKind::failed:
      return false;
  }
  return false;
}

}  // namespace

std::string error_text(const Failure& failure) {
  return fmt::format("{} {} (provider {}, model {}): {}", to_word(failure.cls),
                     failure.code.empty() ? "without code" : failure.code,
                     failure.provider.empty() ? "none" : failure.provider,
                     failure.model.empty() ? "none" : failure.model, failure.message);
}

std::string step_key_of(const Event& event) { return text_of(event.payload, "key"); }

std::vector<Fold::Problem> Fold::add(const Event& event) {
  problems_.clear();
  const auto kind = *event.kind.known();
  if (!begun_) {
    need(kind == EventKind::queued || kind == EventKind::started, "begins the journal");
    begin(kind, event);
  } else {
    need(kind != EventKind::queued && kind != EventKind::started, "stands in mid-journal");
    check_terminal(kind, event);
    check_claim(kind, event);
    if (std::exchange(expects_end_, false)) {
      need(kind == EventKind::failed, "stands where the failure belongs");
    }
  }
  begun_ = true;
  apply(kind, event);
  previous_ = kind;
  return problems_;
}

void Fold::begin(EventKind kind, const Event& event) {
  request_ = event.payload;
  created_at_ = event.at;
  origin_ = kind == EventKind::started ? Origin::interactive : Origin::queued;
}

void Fold::need(bool holds, std::string_view text) {
  if (!holds) problems_.push_back({false, std::string(text)});
}

void Fold::check_terminal(EventKind kind, const Event& event) {
  if (!is_terminal(status_)) return;
  bool may_follow = false;
  if (status_ == Status::failed) {
    const bool is_redrive = kind == EventKind::redriven || kind == EventKind::resolved;
    // A write resolved as landed gets its step's event first.
    may_follow = expects_resolved_ ? kind == EventKind::resolved : is_redrive || is_step(kind);
    expects_resolved_ = is_step(kind);
  } else if (status_ == Status::cancelled) {
    const bool is_in_flight = is_step(kind) || kind == EventKind::slept;
    if (is_in_flight) ++steps_after_end_;
    may_follow = (is_in_flight && steps_after_end_ == 1 && event.claim == claim_) ||
                 kind == EventKind::probed;
  }
  if (may_follow) return;
  problems_.push_back({true, fmt::format("changes a run that is {}", to_word(status_))});
}

void Fold::check_claim(EventKind kind, const Event& event) {
  if (kind == EventKind::claimed) {
    need(event.claim == claim_ + 1,
         fmt::format("has claim {}, the one before is {}", event.claim, claim_));
    need(status_ == Status::queued, fmt::format("claims a run that is {}", to_word(status_)));
    return;
  }
  need(event.claim == claim_, fmt::format("is of claim {}, the run is at {}", event.claim, claim_));
  if (is_of_a_segment(kind) && !is_terminal(status_)) {
    need(status_ == Status::running,
         fmt::format("is of a segment, but the run is {}", to_word(status_)));
  }
}

void Fold::apply(EventKind kind, const Event& event) {
  switch (kind) {
    case EventKind::queued:
      return put_back(event, false);
    case EventKind::started:
    case EventKind::claimed:
      return take_claim(event);
    case EventKind::model:
    case EventKind::tool:
    case EventKind::step:
      return take_step(kind, event);
    case EventKind::slept:
      // One that was waited for in place ends no segment.
      if (status_ == Status::running && has(event.payload, "available_at")) {
        ++restarts_;
        put_back(event, false);
      }
      return;
    case EventKind::probed:
      return;
    case EventKind::approval_requested:
      return suspend(event, Status::waiting_for_approval);
    case EventKind::input_requested:
      return suspend(event, Status::waiting_for_input);
    case EventKind::approved:
    case EventKind::denied:
    case EventKind::input_submitted:
      return decide(event);
    case EventKind::expired:
      need(is_waiting(status_), fmt::format("ends the wait of a run that is {}", to_word(status_)));
      ++restarts_;
      return put_back(event, false);
    case EventKind::requeued:
      take_error(event);
      return put_back(event, true);
    case EventKind::parked:
    case EventKind::released:
      if (kind == EventKind::parked) take_error(event);
      ++restarts_;
      return put_back(event, false);
    case EventKind::reaped:
      expects_end_ = !has(event.payload, "available_at");
      if (expects_end_) return;
      // A lost worker is a failure where the event names its class.
      if (has(event.payload, "class")) take_error(event);
      ++reclaims_;
      return put_back(event, true);
    case EventKind::handed_over:
      expects_end_ = !has(event.payload, "available_at");
      origin_ = Origin::queued;
      if (expects_end_) return;
      ++restarts_;
      return put_back(event, false);
    case EventKind::woken:
      need(status_ == Status::queued, fmt::format("wakes a run that is {}", to_word(status_)));
      available_at_ = due_time_of(event);
      return;
    case EventKind::cancelled:
      steps_after_end_ = 0;
      return end(event, Status::cancelled);
    case EventKind::redriven:
    case EventKind::resolved:
      return drive_anew(event);
    case EventKind::completed:
      error_.clear();
      tells_error_ = true;
      if (event.payload.is_object() && event.payload.contains("answer")) {
        answer_ = event.payload["answer"];
      }
      return end(event, Status::completed);
    case EventKind::failed:
      take_error(event);
      // Where nobody decided in time and that ends the run, it was not put on the queue before.
      if (previous_ == EventKind::expired) origin_ = origin_before_;
      return end(event, Status::failed);
  }
}

void Fold::take_claim(const Event& event) {
  status_ = Status::running;
  claim_ = event.claim;
  holder_ = text_of(event.payload, "worker");
  ++claims_;
  available_at_.reset();
  if (!started_at_) started_at_ = event.at;
  // Continued by whoever decided, or by a worker.
  if (is_decision(previous_) && origin_before_ != Origin::queued) origin_.reset();
}

void Fold::take_step(EventKind kind, const Event& event) {
  // What a person says about a failed run's write belongs to the drive that is over.
  if (status_ == Status::failed) return;
  if (kind == EventKind::model) ++iterations_;
  if (has(event.payload, "usage")) usage_ += decode_usage(event.payload["usage"]);
}

void Fold::suspend(const Event& event, Status status) {
  status_ = status;
  holder_.clear();
  undecided_.clear();
  turn_ = text_of(event.payload, "turn");
  if (!has(event.payload, "calls") || !event.payload["calls"].is_array()) return;
  for (const auto& call : event.payload["calls"]) undecided_.insert(text_of(call, "id"));
}

/// The run goes on when its last call is decided.
void Fold::decide(const Event& event) {
  need(is_waiting(status_), fmt::format("decides on a run that is {}", to_word(status_)));
  if (has(event.payload, "calls") && event.payload["calls"].is_array()) {
    for (const auto& call : event.payload["calls"]) {
      const auto id = text_of(call, "id");
      need(undecided_.erase(id) == 1, fmt::format("decides call {} a second time", id));
    }
  }
  if (!undecided_.empty()) return;
  ++restarts_;
  put_back(event, false);
}

void Fold::take_error(const Event& event) {
  // An event that names no class does not tell.
  tells_error_ = has(event.payload, "class");
  if (!tells_error_) return;
  Failure failure;
  failure.cls =
      parse_word<FailureClass>(text_of(event.payload, "class")).value_or(FailureClass::unknown);
  failure.code = text_of(event.payload, "code");
  failure.message = text_of(event.payload, "message");
  failure.provider = text_of(event.payload, "provider");
  failure.model = text_of(event.payload, "model");
  error_ = error_text(failure);
}

void Fold::put_back(const Event& event, bool charged) {
  status_ = Status::queued;
  holder_.clear();
  undecided_.clear();
  available_at_ = due_time_of(event);
  origin_before_ = origin_;
  origin_ = Origin::queued;
  if (charged) ++requeues_;
}

void Fold::end(const Event& event, Status status) {
  status_ = status;
  reason_ = status == Status::cancelled ? std::string(to_word(Reason::cancelled))
                                        : text_of(event.payload, "reason");
  holder_.clear();
  undecided_.clear();
  available_at_.reset();
  finished_at_ = event.at;
}

void Fold::drive_anew(const Event& event) {
  put_back(event, false);
  reason_.clear();
  error_.clear();
  tells_error_ = true;
  finished_at_.reset();
  requeues_ = 0;
  reclaims_ = 0;
  ++redrives_;
  iterations_ = 0;
  usage_ = Usage{};
  claims_ = 0;
  restarts_ = 0;
}

}  // namespace holdfast
