#include "sim/members.hpp"

#include <algorithm>

#include "runtime/front.hpp"

namespace holdfast::sim {

Member::Member(Shared& shared, const std::string& name, int subject)
    : shared_(shared), process_(shared.env.make_process(name)) {
  hindrance_.subject = subject;
  if (shared.settings.skew > 0) {
    process_.boot_skew = Duration(shared.outside.chance.below(shared.settings.skew));
    process_.wall_skew =
        Duration(shared.outside.chance.between(-shared.settings.skew, shared.settings.skew));
  }
}

void Member::main() {
  try {
    auto store = std::make_unique<SimStore>(shared_.rows, shared_.env, shared_.faults, hindrance_,
                                            shared_.witness, shared_.settings.presence > 0);
    const auto runtime = make_runtime(make_options(shared_.outside, hindrance_), shared_.env,
                                      std::move(store), make_models(shared_.outside, hindrance_));
    runtime->register_task("steps", make_steps(shared_.outside, hindrance_));
    work(*runtime);
  } catch (const StoreError&) {
    // A program that cannot use its store ends.
  }
  if (!process_.is_dead) process_.has_ended = true;
}

WorkerMember::WorkerMember(Shared& shared, int number)
    : Member(shared, "worker" + std::to_string(number), number),
      asked_(shared.env.make_event_count()) {}

void WorkerMember::stop(Duration grace) {
  is_asked_ = true;
  at_once_ = grace == Duration::zero();
  asked_->notify_all();
}

void WorkerMember::work(Runtime& runtime) {
  WorkerSettings settings;
  settings.concurrency = shared_.settings.concurrency;
  settings.name = process().name;
  settings.grace = std::chrono::seconds(3);
  settings.with_reaper = !shared_.settings.one_reaper || subject() != 0;
  if (shared_.settings.by_queue && subject() == 1) settings.queues = {"side"};
  const auto worker = runtime.start_worker(settings);
  while (!is_asked_ && !process().is_over) {
    asked_->wait_past(asked_->current(), std::chrono::hours(24), {});
  }
  worker->stop();
  if (at_once_ || process().is_over) worker->stop_now();
  worker->join();
}

void ClientMember::work(Runtime& runtime) {
  for (const Element& element : elements_) {
    const Duration wait = Duration(element.at) - shared_.env.elapsed();
    if (wait > Duration::zero()) shared_.env.sleep_for(wait, {});
    if (process().is_over) return;
    stop_ = std::stop_source();
    try {
      take(runtime, element);
    } catch (const RefusedError&) {
    } catch (const StoreError&) {
      // Whether it was done is not known.
    }
  }
}

void ClientMember::take(Runtime& runtime, const Element& element) {
  const Operator by{"somebody", "simulated", ""};
  const auto known = shared_.ids.find(element.subject);
  if (known == shared_.ids.end() && element.what > Do::run_inline && element.what != Do::reap)
    return;
  const RunId id = known == shared_.ids.end() ? RunId() : known->second;
  switch (element.what) {
    case Do::enqueue:
    case Do::run:
    case Do::run_inline:
      return store(runtime, element);
    case Do::cancel:
      runtime.cancel(id, by);
      return;
    case Do::approve:
    case Do::deny:
    case Do::input:
      if (comes_to(runtime, id, element.what)) decide(runtime, element);
      return;
    case Do::redrive:
      if (comes_to(runtime, id, element.what)) runtime.redrive(id, by);
      return;
    case Do::resolve:
      if (comes_to(runtime, id, element.what)) resolve(runtime, id);
      return;
    case Do::wake:
      runtime.wake(id, by);
      return;
    case Do::hand_over:
      // Where nobody holds a presence, the living are told from the dead by nothing.
      if (shared_.settings.presence == 0) return;
      comes_to(runtime, id, element.what);
      runtime.hand_over(id, false, by);  // also too early
      return;
    case Do::purge: {
      PurgeRequest request;
      request.older_than = Duration(0);
      runtime.purge(request);
      return;
    }
    case Do::reap:
      runtime.reap(50, false);
      return;
    case Do::kill:
    case Do::freeze:
    case Do::stop:
    case Do::start:
    case Do::drop_presence:
    case Do::store_error:
    case Do::store_slow:
    case Do::jump_wall:
    case Do::suspend:
      return;  // the world's
  }
}

void ClientMember::store(Runtime& runtime, const Element& element) {
  RunRequest request;
  request.agent = element.detail.at("agent");
  request.input = element.detail.at("script");
  request.priority = element.detail.value("priority", 0);
  if (element.detail.contains("queue")) request.queue = element.detail["queue"];
  if (element.detail.contains("key")) request.idempotency_key = element.detail["key"];
  if (element.detail.contains("max_requeues"))
    request.max_requeues = element.detail["max_requeues"];
  if (element.detail.contains("delay") && element.what != Do::run) {
    request.delay = Duration(element.detail["delay"].get<int>());
  }
  if (!request.idempotency_key) {
    // So that others can do something with it while it runs, or where the reply is lost.
    request.id = shared_.env.new_id();
    shared_.ids[element.subject] = *request.id;
  }
  if (element.what == Do::run) {
    runtime.run(request, {}, stop_.get_token());
  } else if (element.what == Do::run_inline) {
    runtime.run_inline(request, {}, stop_.get_token());
  } else {
    const Run stored = runtime.enqueue(request);
    shared_.ids[element.subject] = stored.id;
    // What stands for itself is as good as said.
    Json said = element.detail;
    said["priority"] = request.priority;
    shared_.witness.acknowledged(stored, said.dump());
  }
}

bool ClientMember::comes_to(Runtime& runtime, const RunId& id, Do what) {
  const auto fits = [&](const Run& run) {
    if (what == Do::input) return run.status.is(Status::waiting_for_input);
    if (what == Do::resolve) return run.status.is(Status::failed) && run.is_fenced_unsafe();
    if (what == Do::hand_over) return run.abandoned;
    if (what == Do::redrive) return run.status.is(Status::failed);
    return run.status.is(Status::waiting_for_approval);
  };
  for (int look = 0; look < 12 && !process().is_over; ++look) {
    if (fits(runtime.get(id))) return true;
    shared_.env.sleep_for(std::chrono::milliseconds(300), {});
  }
  return false;
}

void ClientMember::decide(Runtime& runtime, const Element& element) {
  Decision decision;
  decision.run = shared_.ids.at(element.subject);
  decision.by.actor = "somebody";
  decision.kind = element.what == Do::deny    ? DecisionKind::deny
                  : element.what == Do::input ? DecisionKind::input
                                              : DecisionKind::approve;
  if (element.what == Do::input) decision.values = {{"name", "Ada"}};
  const Run seen = runtime.get(decision.run);
  if (!seen.waiting_for) return;
  if (element.length == 1) {
    decision.turn = seen.waiting_for->turn;
    shared_.env.sleep_for(std::chrono::milliseconds(500), {});
  }
  if (element.length == 2 && !seen.waiting_for->calls.empty() && element.what != Do::input) {
    decision.call = seen.waiting_for->calls.back().id;
  }
  if (element.length == 3) decision.go_on = Decision::Continue::inline_segment;
  runtime.decide(decision, {}, stop_.get_token());
}

/// An honest person, who looks whether it landed.
void ClientMember::resolve(Runtime& runtime, const RunId& id) {
  const Run run = runtime.get(id);
  if (!run.pending) return;
  const auto landed = shared_.ledger.find_landed(id, run.pending->step_key);
  ResolveRequest request;
  request.run = id;
  request.step = run.pending->step_key;
  request.landed = landed.has_value();
  if (landed) request.result = *landed;
  request.by.actor = "somebody";
  runtime.resolve(request);
}

}  // namespace holdfast::sim
