#pragma once

// The state machine of spec, section 3, as pure functions: each takes the row as it is inside the
// write, repeats everything that the decision was based on, and says either what the row becomes
// with its events, or that the transition does not apply. Stores load a row, call one of these
// inside a transaction, and store the outcome; none of them decides anything itself. None relies on
// `input`, `answer` or `definition` being loaded, but for `claimed` (`definition`).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/decide.hpp"
#include "holdfast/run.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// The store's two clocks at the moment of the write.
struct Now {
  WallTime wall;
  StoreTime store;
};

/// The right to write a run: it guards every write of a segment. Interactive segments have no
/// expiry.
struct Lease {
  RunId run;
  std::int64_t claim = 0;
  WorkerId holder;
  bool interactive = false;
};

/// What became of a guarded write.
enum class Write { applied, lost, cancelled };

struct NewEvent {
  EventKind kind;
  std::int64_t claim = 0;
  Json payload;
};

/// A run's next state. Fields of `row` other than the cold ones below are written as they are;
/// `last_sequence` is raised by the store as it appends `events`.
struct Change {
  Run row;
  std::vector<NewEvent> events;
  bool answer_changed = false;      ///< row.answer is to be written
  bool definition_changed = false;  ///< row.definition is to be written
};

/// A transition that did not apply, and why, for people.
struct Declined {
  enum class Kind {
    not_mine,     ///< a segment's write: the run was reaped, claimed by another, or ended
    cancelled,    ///< a segment's write: the run was cancelled under it
    terminal,     ///< reserved
    conflict,     ///< the run is not in a state that allows it
    unchanged,    ///< it is so already
    fenced,       ///< an unsafe fence forbids it
    unknown_word  ///< a newer build wrote its status: hands off
  } kind;
  std::string why;
};
using Transition = std::variant<Change, Declined>;

/// A new run as its caller made it: id, agent, input, policy and the rest are filled in.
struct NewRun {
  Run row;                        ///< status and times are set by the transition
  std::optional<Duration> delay;  ///< available_at = now + delay …
  std::optional<WallTime> at;     ///< … or this
  bool policy_given = true;       ///< false: filled in at the first claim
  std::string
      content_digest;  ///< of agent, input and options: same key and other content is a conflict
};

Change enqueued(const NewRun&, const Now&);
Change started(const NewRun&, const WorkerId& holder, const Now&);

/// One agent that a worker can execute.
struct AgentOffer {
  std::string name;
  Policy policy;
  Json definition;  ///< null for tasks
};

/// queued, due, safe → running under a lease. A run without a policy takes the offer's, one without
/// a definition the offer's too.
Transition claimed(const Run&, const WorkerId&, const AgentOffer&, const Now&);
/// Mine: the lease starts anew. Interactive segments have none: for them it only says whether the
/// run is still theirs.
Transition renewed(const Run&, const Lease&, const Now&);
/// `already_recorded`: this segment's event for the key is there (asked only where it matters).
struct StepRecord {
  EventKind kind = EventKind::step;  ///< model, tool, step, slept, probed
  std::string key;
  Json payload;  ///< carries the key
  std::optional<Usage> usage;
  bool counts_iteration = false;
  bool is_retry = false;  ///< an earlier try may have applied: look for its event first
  bool renews = true;
  std::vector<NewEvent> before;  ///< appended first, in the same write (`probed` before its step)
};
/// Mine: renewal, event, usage, and the step's fence cleared, in one. Nothing is appended twice. On
/// a run that was cancelled under its holder it is a change too: the step in flight is appended
/// (with what it used) and its fence cleared, nothing else; the store then answers
/// `Write::cancelled`.
Transition recorded(const Run&, const Lease&, const StepRecord&, bool already_recorded, const Now&);
/// Mine and clean. Repeated by its own claim after a lost reply it applies, its time counted anew;
/// not to start a write a second time is its caller's part.
Transition fenced(const Run&, const Lease&, const Fence&, const Now&);
struct Unfence {
  std::string step_key;
  std::optional<NewEvent> event;  ///< `probed`: not landed
};
/// Mine, and this claim's own fence; or a fence of an earlier claim that its probe (the event) says
/// has not landed, once that may be believed (see `resolved`). A fence that is gone already:
/// applied.
Transition unfenced(const Run&, const Lease&, const Unfence&, const Now&);
/// settle, requeue, park, sleep, suspend, release: whatever `decide` said. Where the row's fence or
/// budget forbids it after all, the run becomes a dead letter instead. Adds `available_at` or
/// `deadline` to the event's payload.
Transition settled(const Run&, const Lease&, const Settlement&, const Now&);
Transition cancel_acknowledged(const Run&, const Lease&, const Now&);

/// Running, leased, over: the settlement of `decide(run, WorkerLost)` applied. `by_presence` is the
/// event's cause.
bool is_stale(const Run&, const Now&);
Transition reaped(const Run&, const Settlement&, bool by_presence, const Now&);
/// Running under a lease of this worker, not renewed since: the lease ends now. No event.
Transition lease_expired_by_presence(const Run&, const WorkerId&, StoreTime not_renewed_since,
                                     const Now&);

Transition cancelled(const Run&, const Operator&, const Now&);
/// How an answered run goes on.
struct Continuation {
  bool inline_segment = false;
  WorkerId worker;           ///< inline: who executes
  bool interactive = false;  ///< inline without a lease
};
/// Events carry {actor, note, operation, turn, calls: [{id, decision}], values}.
Transition answered(const Run&, const Decision&, const Continuation&, const Now&);
Transition wait_expired(const Run&, const Now&);
Transition handed_over(const Run&, bool process_gone, bool force, const Operator&, const Now&);
/// "Not landed" is believed once the fence's deadline is over. That deadline is the step's own,
/// brought forward where the executor is known gone: to 2 s after a reap by presence, to now by
/// `Settlement::executor_ended`, to zero by another boot (spec, section 5 "Not landed").
/// Goes on as a redrive without an event of its own: `resolved` stands for it.
Transition resolved(const Run&, const ResolveRequest&, const Now&);
Transition redriven(const Run&, const Operator&, const Now&);
Transition woken(const Run&, const Operator&, const Now&);
/// `process_gone`: of a run without a lease; where there is no presence at all the store says true,
/// and age alone decides. A kind of run without an age in the request is left alone.
bool may_purge(const Run&, WallTime last_event, bool process_gone, const PurgeRequest&, const Now&);

/// Does `after` follow `before` in the state table? Every change above has been checked against it.
bool may_follow(Status before, Status after);

/// After a lost reply: did the holder of this claim end its segment already? True where the event
/// of its settlement stands and nobody took the run from it instead.
bool segment_already_settled(std::span<const Event>, std::int64_t claim);
/// After a lost reply: has the caller's operation been applied already? Never for an empty id.
bool operation_already_done(std::span<const Event>, std::string_view operation);

}  // namespace holdfast
