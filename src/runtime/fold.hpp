#pragma once

// What a run's events say its row must be (spec, section 10, invariant 6). Pure.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/run.hpp"

namespace holdfast {

/// The key of a recorded step; empty where its event has none.
std::string step_key_of(const Event&);

/// A failure as events tell it: `rate_limit 429 (provider main, model m): too many`.
std::string error_text(const Failure&);

/// Events in, the row's state out. Knows nothing of stores: it is the second opinion on them.
class Fold {
 public:
  struct Problem {
    bool breaks_terminal = false;  ///< a terminal run was changed by what may not change it
    std::string text;              ///< continues "event N (kind) …"
  };

  /// The next event of the journal. Empty: it may follow what came before.
  std::vector<Problem> add(const Event&);

  Status status() const { return status_; }
  std::int64_t claim() const { return claim_; }
  const std::string& holder() const { return holder_; }
  const std::string& reason() const { return reason_; }
  int requeues() const { return requeues_; }
  int reclaims() const { return reclaims_; }
  int redrives() const { return redrives_; }
  int iterations() const { return iterations_; }
  const Usage& usage() const { return usage_; }
  /// Of the first event: agent, queue, priority. What it leaves out cannot be told.
  const Json& request() const { return request_; }
  /// None where the events leave it open: who goes on after a decision is not in them.
  std::optional<Origin> origin() const { return origin_; }
  /// None before the end, and where the end does not say.
  const std::optional<Json>& answer() const { return answer_; }
  /// The last failure, as `error_text`; empty: none.
  const std::string& error() const { return error_; }
  bool tells_error() const { return tells_error_; }
  const std::string& turn() const { return turn_; }  ///< of the wait
  WallTime created_at() const { return created_at_; }
  std::optional<WallTime> started_at() const { return started_at_; }
  std::optional<WallTime> available_at() const { return available_at_; }
  std::optional<WallTime> finished_at() const { return finished_at_; }
  int claims() const { return claims_; }      ///< of this drive
  int restarts() const { return restarts_; }  ///< uncharged ones of this drive

 private:
  void need(bool holds, std::string_view text);
  void check_terminal(EventKind, const Event&);
  void check_claim(EventKind, const Event&);
  void take_claim(const Event&);
  void take_step(EventKind, const Event&);
  void suspend(const Event&, Status);
  void decide(const Event&);
  void begin(EventKind, const Event&);
  void take_error(const Event&);
  void put_back(const Event&, bool charged);
  void end(const Event&, Status);
  void drive_anew(const Event&);
  void apply(EventKind, const Event&);

  bool begun_ = false;
  std::optional<EventKind> previous_;
  Json request_;
  std::optional<Origin> origin_;
  std::optional<Origin> origin_before_;  ///< before the run was last put on the queue
  std::optional<Json> answer_;
  std::string error_;
  bool tells_error_ = true;
  std::string turn_;
  WallTime created_at_{};
  std::optional<WallTime> started_at_;
  std::optional<WallTime> available_at_;
  std::optional<WallTime> finished_at_;
  Status status_ = Status::queued;
  std::int64_t claim_ = 0;
  std::string holder_;
  std::string reason_;
  int requeues_ = 0;
  int reclaims_ = 0;
  int redrives_ = 0;
  int iterations_ = 0;
  Usage usage_;
  int claims_ = 0;
  int restarts_ = 0;
  std::set<std::string> undecided_;
  int steps_after_end_ = 0;
  bool expects_end_ = false;  ///< `reaped` or `handed_over` without a due time: `failed` follows
  bool expects_resolved_ = false;  ///< a step of a failed run: `resolved` follows
  std::vector<Problem> problems_;
};

}  // namespace holdfast
