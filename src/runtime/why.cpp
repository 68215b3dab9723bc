#include "runtime/why.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "runtime/circuits.hpp"
#include "runtime/why_text.hpp"

namespace holdfast {
namespace {

class Explainer {
 public:
  explicit Explainer(const WhyInput& input) : in_(input), run_(input.run) {}

  Json explain() {
    facts_ = {{"agent", run_.agent},
              {"queue", run_.queue},
              {"reason", run_.reason ? Json(run_.reason->text()) : Json()},
              {"origin", run_.origin.text()},
              {"claim", run_.claim},
              {"requeue_count", run_.requeue_count},
              {"max_requeues", run_.max_requeues < 0 ? Json() : Json(run_.max_requeues)},
              {"reclaim_count", run_.reclaim_count},
              {"redrive_count", run_.redrive_count},
              {"served", is_served(in_.workers, run_.agent, run_.queue)},
              {"last_step", last_step(in_.events)},
              {"failures", failures_of_drive(in_.events)},
              {"reclaims", reclaims_of_drive(in_.events)}};
    if (const auto status = run_.status.known()) {
      explain_status(*status);
    } else {
      say("Its status, {}, was written by a newer holdfast: this one neither executes nor changes "
          "it.",
          run_.status.text());
    }
    return {{"id", run_.id},
            {"status", run_.status.text()},
            {"text", fmt::format("{}", fmt::join(lines_, "\n"))},
            {"facts", facts_},
            {"commands", commands_}};
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void offer(fmt::format_string<Args...> format, Args&&... args) {
    commands_.push_back("holdfast " + fmt::format(format, std::forward<Args>(args)...));
  }

  void explain_status(Status status) {
    switch (status) {
      case Status::queued:
        return explain_queued();
      case Status::running:
        return run_.lease_until ? explain_leased() : explain_interactive();
      case Status::waiting_for_approval:
        return explain_approval();
      case Status::waiting_for_input:
        return explain_input();
      case Status::completed:
        return explain_completed();
      case Status::failed:
        return explain_failed();
      case Status::cancelled:
        return explain_cancelled();
    }
  }

  void explain_queued() {
    const bool is_due = !run_.available_at || *run_.available_at <= in_.now.wall;
    if (is_due) {
      say("Run {} of agent {} is queued and may start now.", run_.id, run_.agent);
    } else {
      say("Run {} of agent {} is queued and waits: it may start {}.", run_.id, run_.agent,
          moment(*run_.available_at, in_.now.wall));
      facts_["available_at"] = format_time(*run_.available_at);
      facts_["due_in_seconds"] =
          static_cast<double>((*run_.available_at - in_.now.wall).count()) / 1000.0;
    }
    tell_how_it_came_here();
    tell_circuits();
    tell_history();
    tell_last_step();
    if (run_.is_fenced_unsafe()) {
      tell_fence();
      if (run_.is_safe()) {
        say("Whoever claims it asks the probe of {} first whether that write landed.",
            run_.pending->name);
      }
    }
    if (!is_served(in_.workers, run_.agent, run_.queue)) {
      say("No live worker serves agent {} in queue {}: it stays queued until one is started.",
          run_.agent, run_.queue);
      offer("worker --queue {}", shell_word(run_.queue));
    } else if (is_due) {
      say("A live worker serves it: it starts as soon as a slot is free and nothing of higher "
          "priority is due.");
    } else {
      say("Then a live worker that serves it goes on behind its last recorded step.");
    }
    if (!is_due) offer("wake {}", run_.id);
    offer("cancel {}", run_.id);
  }

  /// Of the models that its agent names, in their order.
  void tell_circuits() {
    const Json* models = find_member(run_.definition, "models");
    if (models == nullptr || !models->is_array()) return;
    auto shown = Json::array();
    for (const Json& model : *models) {
      const auto it = std::ranges::find_if(in_.circuits, [&](const Circuit& circuit) {
        return circuit.open_until && model == circuit.target;
      });
      if (it == in_.circuits.end()) continue;
      shown.push_back(show_circuit(*it, in_.now.store, in_.now.wall));
      const bool is_open = in_.now.store < *it->open_until;
      say("{} failed {} times in a row, lately with {}: nobody calls it{}.",
          model.get_ref<const std::string&>(), it->failures, to_word(it->cause),
          is_open ? " until " + text_at(shown.back(), "next_probe_at") + ", when one call tries"
                  : ", but for one call at a time that tries");
    }
    if (!shown.empty()) facts_["circuits"] = shown;
  }

  /// The newest event that says why a run is on the queue.
  void tell_how_it_came_here() {
    for (auto it = in_.events.rbegin(); it != in_.events.rend(); ++it) {
      const auto kind = it->kind.known();
      if (!kind) continue;
      const auto at = moment(it->at, in_.now.wall);
      const auto actor = text_at(it->payload, "actor");
      const auto by = actor.empty() ? std::string() : " by " + actor;
      switch (*kind) {
        case EventKind::queued:
          return say("It was stored {} and has not been started yet.", at);
        case EventKind::requeued:
          return say("Its last try failed {} with {}.", at, failure_text(it->payload));
        case EventKind::parked:
          return say("It was parked {}, uncharged: the circuits of its models were open ({}).", at,
                     failure_text(it->payload));
        case EventKind::slept:
          return say("It asked to sleep; nothing is charged and no slot is held.");
        case EventKind::released:
          if (const auto why = text_at(it->payload, "message"); !why.empty()) {
            return say("A worker handed it back {}, uncharged, for another to take: {}.", at, why);
          }
          return say("Its worker stopped gracefully {} and handed it back, uncharged.", at);
        case EventKind::reaped:
          return say("It was taken back {} from worker {}, which was lost.", at,
                     text_at(it->payload, "worker"));
        case EventKind::handed_over:
          return say("It was handed over to the workers {}{}.", at, by);
        case EventKind::redriven:
          return say("It was redriven {}{}.", at, by);
        case EventKind::approved:
        case EventKind::denied:
        case EventKind::input_submitted:
          return say("A person answered it {}{} ({}).", at, by, it->kind.text());
        case EventKind::expired:
          return say("Nobody decided until its deadline, {}.", at);
        case EventKind::woken:
        case EventKind::resolved:
        case EventKind::probed:
        case EventKind::started:
        case EventKind::claimed:
        case EventKind::model:
        case EventKind::tool:
        case EventKind::step:
        case EventKind::approval_requested:
        case EventKind::input_requested:
        case EventKind::cancelled:
        case EventKind::completed:
        case EventKind::failed:
          break;
      }
    }
  }

  void explain_leased() {
    const auto holder = run_.claimed_by.value_or("nobody");
    say("Run {} of agent {} is executed by worker {} under claim {}{}.", run_.id, run_.agent,
        holder, run_.claim, since(EventKind::claimed));
    facts_["claimed_by"] = holder;
    facts_["holder_gone"] = in_.holder_gone;
    tell_last_step();
    tell_fence();
    tell_history();
    const auto left = *run_.lease_until - in_.now.store;
    facts_["lease_left_seconds"] = static_cast<double>(left.count()) / 1000.0;
    if (in_.holder_gone) {
      say("That worker is gone. The next look at presence or sweep of a reaper takes the run "
          "back.");
      tell_reclaim();
      offer("reap");
    } else if (left < Duration::zero()) {
      say("Its lease has been over for {}: the worker is slow, cut off or dead. The next sweep of "
          "a reaper takes the run back unless the worker renews before.",
          spoken(-left));
      tell_reclaim();
      offer("reap");
    } else {
      say("Its lease is good for another {} and is renewed while it makes progress.", spoken(left));
    }
    offer("events {} --follow", run_.id);
    offer("cancel {}", run_.id);
  }

  void tell_reclaim() {
    if (!run_.is_safe()) {
      say("Its unfinished write has no probe, so it will become a dead letter (not_retryable) "
          "instead of being repeated.");
    } else if (run_.requeue_count >= run_.max_requeues) {
      say("Its budget of {} requeues is spent, so it will become a dead letter "
          "(retries_exhausted).",
          run_.max_requeues);
    } else {
      say("It will be queued again at once, as requeue {} of {}.", run_.requeue_count + 1,
          run_.max_requeues);
    }
  }

  void explain_interactive() {
    const auto holder = run_.claimed_by.value_or("nobody");
    say("Run {} of agent {} is executed interactively by the process that started it ({}){}.",
        run_.id, run_.agent, holder, since(EventKind::started));
    facts_["claimed_by"] = holder;
    facts_["holder_gone"] = in_.holder_gone;
    facts_["abandoned"] = run_.abandoned;
    tell_last_step();
    tell_fence();
    if (run_.abandoned) {
      say("That process is gone. Nobody takes such a run by itself: hand it over to the workers, "
          "or cancel it.");
      offer("handover {}", run_.id);
    } else {
      say("That process lives as far as can be told; it holds no lease, and no reaper touches it.");
      offer("events {} --follow", run_.id);
      offer("handover {} --force", run_.id);
    }
    offer("cancel {}", run_.id);
  }

  void tell_deadline() {
    const auto& wait = *run_.waiting_for;
    if (!wait.deadline) return say("It waits without a deadline, holds no lease and no slot.");
    facts_["deadline"] = format_time(*wait.deadline);
    if (*wait.deadline > in_.now.wall) {
      say("Its deadline is {}; after that the next sweep records that nobody decided.",
          moment(*wait.deadline, in_.now.wall));
    } else {
      say("Its deadline was {}: a decision is refused now, and the next sweep of a reaper records "
          "that nobody decided.",
          moment(*wait.deadline, in_.now.wall));
      offer("reap");
    }
  }

  bool is_overdue() const {
    const auto& deadline = run_.waiting_for->deadline;
    return deadline && *deadline <= in_.now.wall;
  }

  void explain_approval() {
    say("Run {} of agent {} waits for a person's approval{}.", run_.id, run_.agent,
        since(EventKind::approval_requested));
    if (!run_.waiting_for) return;
    const auto& wait = *run_.waiting_for;
    facts_["turn"] = wait.turn;
    if (!wait.prompt.empty()) say("{}", wait.prompt);
    int undecided = 0;
    for (const auto& call : wait.calls) {
      say("Call {}: {} with {} ({}).", call.id, call.name, brief(call.arguments),
          to_word(call.decision));
      if (call.decision == Verdict::undecided) ++undecided;
    }
    tell_deadline();
    if (is_overdue()) return offer("cancel {}", run_.id);
    say("What is approved is what runs: the turn {} covers these very arguments. After the "
        "decision it {}.",
        wait.turn, after_decision());
    offer("approve {} --turn {}", run_.id, wait.turn);
    offer("deny {} --turn {}", run_.id, wait.turn);
    if (undecided > 1) {
      const auto first = std::find_if(wait.calls.begin(), wait.calls.end(), [](const auto& call) {
        return call.decision == Verdict::undecided;
      });
      offer("approve {} --turn {} --call {}", run_.id, wait.turn, first->id);
    }
    offer("cancel {}", run_.id);
  }

  std::string after_decision() const {
    return run_.origin.is(Origin::interactive) ? "goes on in the process that gives the decision"
                                               : "goes back to the workers";
  }

  void explain_input() {
    say("Run {} of agent {} waits for values from a person{}.", run_.id, run_.agent,
        since(EventKind::input_requested));
    if (!run_.waiting_for) return;
    const auto& wait = *run_.waiting_for;
    facts_["turn"] = wait.turn;
    facts_["schema"] = wait.schema;
    if (!wait.prompt.empty()) say("{}", wait.prompt);
    for (const auto& call : wait.calls) {
      say("They are for {} with {}.", call.name, brief(call.arguments));
    }
    const Json properties = properties_of(wait.schema);
    for (const auto& [name, schema] : properties.items()) say("- {}: {}", name, brief(schema));
    tell_deadline();
    if (is_overdue()) return offer("cancel {}", run_.id);
    say("After the answer it {}.", after_decision());
    offer("input {} --turn {} --values {}", run_.id, wait.turn,
          shell_word(dump_json(example_values(wait.schema))));
    offer("cancel {}", run_.id);
  }

  void explain_completed() {
    const bool is_partial = run_.reason && run_.reason->is(Reason::budget_exhausted);
    const auto* end = newest(EventKind::completed);
    std::string limit = end ? text_member(end->payload, "message") : std::string();
    if (limit.empty()) limit = "its budget was exhausted";
    say("Run {} of agent {} completed{}{}.", run_.id, run_.agent, ended(),
        is_partial ? " with a partial answer, because " + limit : "");
    if (run_.finish == "length") {
      say("Its answer was cut at the model's token limit and is not whole.");
      facts_["finish"] = run_.finish;
    }
    tell_history();
    offer("show {}", run_.id);
    offer("events {}", run_.id);
  }

  void explain_failed() {
    const auto reason = run_.reason ? run_.reason->text() : std::string("no reason");
    say("Run {} of agent {} failed{} ({}).", run_.id, run_.agent, ended(), reason);
    if (run_.error) {
      say("What ended it: {}.", failure_text(*run_.error));
    }
    tell_history();
    tell_last_step();
    if (!run_.is_clean()) return explain_unknown_write();
    if (run_.reason && run_.reason->is(Reason::retries_exhausted)) {
      say("Its budget of {} requeues is spent. Nothing happens by itself; a redrive gives it a new "
          "one and goes on behind its last recorded step.",
          run_.max_requeues);
    } else {
      say("Nothing happens by itself. Mend the cause; a redrive then goes on behind its last "
          "recorded step.");
    }
    offer("redrive {}", run_.id);
    offer("events {}", run_.id);
  }

  /// A write that started and whose end nobody recorded: the one thing that only a person (or a
  /// probe) can find out.
  void explain_unknown_write() {
    tell_fence();
    const auto& fence = *run_.pending;
    say("Whether this write landed is unknown, so it is not repeated. Look where {} has its effect "
        "(its log, the system it writes to) for the idempotency key {} or these arguments, from {} "
        "on.",
        fence.name, fence.idempotency_key, format_time(fence.since));
    say("If it is there, resolve it as landed, with its result: the run goes on behind it. If it "
        "is not, resolve it as not landed: the write is then made anew.");
    if (const auto from = in_.now.wall + (fence.deadline - in_.now.store); from > in_.now.wall) {
      facts_["not_landed_from"] = format_time(from);
      say("Not landed is accepted {}, or with --force: it may still be under way.",
          moment(from, in_.now.wall));
    }
    offer("resolve {} --step {} --landed --result {}", run_.id, shell_word(fence.step_key),
          shell_word("JSON"));
    offer("resolve {} --step {} --not-landed", run_.id, shell_word(fence.step_key));
    if (fence.has_probe) {
      say("It has a probe, which a redrive asks once more.");
      offer("redrive {}", run_.id);
    }
    offer("events {}", run_.id);
  }

  void explain_cancelled() {
    const auto* event = newest(EventKind::cancelled);
    const auto actor = event ? text_at(event->payload, "actor") : std::string();
    const auto note = event ? text_at(event->payload, "note") : std::string();
    say("Run {} of agent {} was cancelled{}{}{}.", run_.id, run_.agent, ended(),
        actor.empty() ? "" : " by " + actor, note.empty() ? "" : fmt::format(" ({})", note));
    if (run_.claimed_by) {
      say("Worker {} has not acknowledged yet{}; the step in flight is still recorded when it "
          "ends, and nothing else starts.",
          *run_.claimed_by, in_.holder_gone ? " and is gone" : "");
    }
    if (!run_.is_clean()) {
      tell_fence();
      say("Whether this write landed is unknown; look for the idempotency key {}.",
          run_.pending->idempotency_key);
    }
    say("It stays cancelled; what it had done is in its events.");
    offer("events {}", run_.id);
  }

  void tell_fence() {
    if (!run_.pending) return;
    const auto& fence = *run_.pending;
    say("Step {} ({}, {}) is in flight or was interrupted: begun {} under claim {}, with arguments "
        "{}, idempotency key {}.",
        fence.step_key, fence.name, to_word(fence.effect), moment(fence.since, in_.now.wall),
        fence.claim, brief(fence.arguments), fence.idempotency_key);
    facts_["pending"] = {{"step", fence.step_key},
                         {"name", fence.name},
                         {"effect", to_word(fence.effect)},
                         {"arguments", fence.arguments},
                         {"idempotency_key", fence.idempotency_key},
                         {"since", format_time(fence.since)},
                         {"has_probe", fence.has_probe}};
  }

  /// Failures and lost workers of this drive.
  void tell_history() {
    const auto& reclaims = facts_["reclaims"];
    for (const auto& reclaim : reclaims) {
      const auto step = text_at(reclaim, "step");
      const auto cause = text_at(reclaim, "cause");
      say("Worker {} was lost {}{}{}.", text_at(reclaim, "worker"), text_at(reclaim, "at"),
          step.empty() ? " while no write was in flight" : " while it executed step " + step,
          cause == "presence" ? ": its process ended"
          : cause == "lease"  ? ": its lease ran out"
                              : "");
    }
    const auto& failures = facts_["failures"];
    if (failures.size() > 1) {
      say("It has failed {} times in this drive; the last ones:", failures.size());
      const auto first = failures.size() > 3 ? failures.size() - 3 : 0;
      for (auto i = first; i < failures.size(); ++i) {
        say("- {}: {}", text_at(failures[i], "at"), failure_text(failures[i]));
      }
    }
    if (run_.requeue_count > 0) {
      say("{} of {} requeues are used ({} of them for lost workers).", run_.requeue_count,
          run_.max_requeues, run_.reclaim_count);
    }
  }

  void tell_last_step() {
    const auto& step = facts_["last_step"];
    if (step.is_null()) return say("No step of it is recorded yet.");
    say("Its last recorded step is {} ({}).", text_at(step, "key"), text_at(step, "at"));
  }

  std::string since(EventKind kind) const {
    const auto* event = newest(kind);
    if (event == nullptr) return {};
    return fmt::format(", since {} ({})", spoken(in_.now.wall - event->at), format_time(event->at));
  }

  std::string ended() const {
    if (!run_.finished_at) return {};
    return " " + moment(*run_.finished_at, in_.now.wall);
  }

  const Event* newest(EventKind kind) const {
    const auto it = std::find_if(in_.events.rbegin(), in_.events.rend(),
                                 [&](const Event& event) { return event.kind.is(kind); });
    return it == in_.events.rend() ? nullptr : &*it;
  }

  const WhyInput& in_;
  const Run& run_;
  std::vector<std::string> lines_;
  std::vector<std::string> commands_;
  Json facts_;
};

bool holds(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

Json explain(const WhyInput& input) { return Explainer(input).explain(); }

bool is_served(const std::vector<WorkerRow>& workers, const std::string& agent,
               const std::optional<std::string>& queue) {
  return std::any_of(workers.begin(), workers.end(), [&](const WorkerRow& worker) {
    const bool takes_queue = !queue || worker.queues.empty() || holds(worker.queues, *queue);
    return takes_queue && holds(worker.agents, agent);
  });
}

}  // namespace holdfast
