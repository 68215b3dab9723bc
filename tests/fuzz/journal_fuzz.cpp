// Rows and journals read back from a store that something else has written: the first line is the
// row, the others are events. Whatever stands in them, reading, replaying, verifying and the
// transitions answer.

#include <algorithm>
#include <limits>
#include <set>

#include "core/run_codec.hpp"
#include "core/transition.hpp"
#include "engine/replay.hpp"
#include "fuzz/fuzz.hpp"
#include "runtime/fold.hpp"
#include "runtime/verify.hpp"
#include "store/worker_codec.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

constexpr const char* kRun = "0198c2a4-7d1e-7c3a-9f00-1b2c3d4e5f60";
const Now kNow{WallTime(Duration(1'790'000'000'000)), StoreTime(std::chrono::hours(100))};

/// As stores read a JSON column: what is not JSON is `discarded`.
Json parse_column(std::string_view text) {
  return parse_json(text).value_or(Json(Json::value_t::discarded));
}

std::int64_t number_at(const Json& json, const char* key) {
  const Json* found = find_member(json, key);
  return found != nullptr && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// What is encoded again is read again as the same.
template <class Value, class Decode>
Value decode_twice(const Json& json, const Decode& decode) {
  const Value value = decode(json);
  expect(encode(decode(encode(value))) == encode(value), "a value is stored as it is",
         dump_json(encode(value)));
  return value;
}

Run read_run(const Json& json) {
  Run run;
  run.id = kRun;
  run.agent = text_member(json, "agent");
  run.status = Word<Status>(text_member(json, "status"));
  run.claim = number_at(json, "claim");
  run.requeue_count = static_cast<int>(number_at(json, "requeue_count"));
  run.max_requeues = static_cast<int>(number_at(json, "max_requeues"));
  run.available_at = WallTime(Duration(number_at(json, "available_at")));
  if (const std::string holder = text_member(json, "claimed_by"); !holder.empty()) {
    run.claimed_by = holder;
    run.lease_until = StoreTime(Duration(number_at(json, "lease_until")));
  }
  if (const Json* input = find_member(json, "input")) run.input = *input;
  if (const Json* found = find_member(json, "policy")) {
    run.policy = decode_twice<Policy>(*found, decode_policy);
  }
  if (const Json* found = find_member(json, "pending")) {
    run.pending = decode_twice<Fence>(*found, decode_fence);
  }
  if (const Json* found = find_member(json, "waiting_for")) {
    run.waiting_for = decode_twice<Wait>(*found, decode_wait);
  }
  if (const Json* found = find_member(json, "error")) {
    run.error = decode_twice<Failure>(*found, decode_failure);
  }
  if (const Json* found = find_member(json, "usage")) {
    run.usage = decode_twice<Usage>(*found, decode_usage);
  }
  if (const Json* found = find_member(json, "labels")) {
    run.labels = decode_twice<Labels>(*found, decode_labels);
  }
  if (const Json* found = find_member(json, "worker")) {
    decode_twice<WorkerRow>(*found, decode_worker);
  }
  return run;
}

Event read_event(std::string_view line, std::int64_t sequence) {
  Event event;
  event.run = kRun;
  event.kind = Word<EventKind>(std::string(fuzz::take_until(line, " ")));
  event.sequence = sequence;
  event.at = kNow.wall;
  event.payload = parse_column(line);
  event.claim = number_at(event.payload, "claim");
  return event;
}

/// Every recorded step is returned to a handler that asks for what is there, in its order.
void check_replay(const std::vector<Event>& events) {
  Replay replay(events);
  std::set<std::string> seen;
  for (const Event& event : events) {
    const auto kind = event.kind.known();
    if (kind != EventKind::step && kind != EventKind::tool && kind != EventKind::model) continue;
    const std::string key = text_member(event.payload, "key");
    const std::string name = text_member(event.payload, "name");
    if (key.empty() || !seen.insert(key).second) continue;
    try {
      const RecordedStep* step = replay.take(key, name, true, false);
      expect(step == nullptr || step->key == key, "a key leads to its own step", key);
      if (step != nullptr && step->name == name) {
        expect(step->result == result_of(*kind, event.payload), "a step has its own result", key);
      }
    } catch (const FailureError& error) {
      expect(error.failure().cls == FailureClass::configuration, "another step is a mistake", key);
    }
  }
  const Question question{.calls = {{"1.1", "pay", Json::object()}}};
  const Answers answers = replay.find_answers("turn", question.calls);
  expect(answers.verdicts.size() == question.calls.size(), "one verdict for each call");
}

/// A change is one that the state table allows, and raises the claim by one at most.
void check_change(const Run& before, const Transition& transition) {
  const auto* change = std::get_if<Change>(&transition);
  if (change == nullptr) return;
  expect(before.status.known().has_value(), "what this build does not know is left alone");
  expect(may_follow(*before.status.known(), *change->row.status.known()), "the state table holds");
  expect(change->row.claim == before.claim || change->row.claim == before.claim + 1,
         "claims grow one by one");
  expect(change->row.requeue_count == 0 || change->row.requeue_count == before.requeue_count ||
             change->row.requeue_count <= std::max(before.max_requeues, 1),
         "the budget is kept");
}

void check_transitions(const Run& run) {
  if (run.claim < 0 || run.claim == std::numeric_limits<std::int64_t>::max()) return;
  const Lease lease{run.id, run.claim, run.claimed_by.value_or(""), false};
  const Operator by{"ada", "", "op"};
  check_change(run, claimed(run, "worker", {run.agent, run.policy, Json()}, kNow));
  check_change(run, renewed(run, lease, kNow));
  check_change(run, fenced(run, lease, run.pending.value_or(Fence{}), kNow));
  check_change(run, reaped(run, decide(run, WorkerLost{"w"}, false, kNow.wall, 0.5), false, kNow));
  const Failure failure = run.error.value_or(Failure{});
  check_change(run, settled(run, lease, decide(run, Failed{failure}, false, kNow.wall, 0.5), kNow));
  check_change(run, wait_expired(run, kNow));
  check_change(run, redriven(run, by, kNow));
  check_change(run, cancelled(run, by, kNow));
  check_change(run, handed_over(run, true, false, by, kNow));
  check_change(run, lease_expired_by_presence(run, lease.holder, kNow.store, kNow));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const Run run = read_run(parse_column(fuzz::take_until(rest, "\n")));
  std::vector<Event> events;
  for (const std::string_view line : fuzz::split(rest, "\n")) {
    events.push_back(read_event(line, static_cast<std::int64_t>(events.size()) + 1));
  }
  expect(parse_json(dump_json(to_json(run)), 512).has_value(), "a run is shown as JSON");
  for (const Event& event : events) {
    expect(parse_json(dump_json(to_json(event)), 512).has_value(), "an event is shown as JSON");
  }
  check_run(run, events);
  check_replay(events);
  check_transitions(run);
  return 0;
}
