#pragma once

// The processes of a history: workers, and clients that do what callers and people do.

#include <deque>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "sim/outside.hpp"
#include "sim/sim_store.hpp"

namespace holdfast::sim {

/// What all processes share.
struct Shared {
  SimEnv& env;
  Store& rows;
  Faults& faults;
  Ledger& ledger;
  Witness& witness;
  Outside& outside;
  const Settings& settings;
  std::map<int, RunId> ids = {};  ///< by the number of the run in the plan
};

/// A process with its own runtime. Made by the world; its main task runs until it has ended or
/// died.
class Member {
 public:
  Member(Shared& shared, const std::string& name, int subject);
  virtual ~Member() = default;
  Member(const Member&) = delete;

  void begin() {
    main_ = shared_.env.spawn_in(process_, "main", [this] { main(); });
  }
  SimProcess& process() { return process_; }
  Hindrance& hindrance() { return hindrance_; }
  int subject() const { return hindrance_.subject; }
  bool is_gone() const { return process_.is_dead || process_.has_ended; }
  /// Somebody asks it to end. Of a worker: `grace` zero, at once. Of a client: what it does just
  /// now.
  virtual void stop(Duration grace) = 0;

 protected:
  virtual void work(Runtime&) = 0;
  Shared& shared_;

 private:
  void main();

  SimProcess& process_;
  Hindrance hindrance_;
  std::unique_ptr<Thread> main_;
};

/// Runs a worker until it is told to stop.
class WorkerMember final : public Member {
 public:
  WorkerMember(Shared& shared, int number);
  void stop(Duration grace) override;
  bool is_asked() const { return is_asked_; }

 private:
  void work(Runtime&) override;

  std::unique_ptr<EventCount> asked_;
  bool is_asked_ = false;
  bool at_once_ = false;
};

/// Does its elements one after another, each at its time.
class ClientMember final : public Member {
 public:
  ClientMember(Shared& shared, int number, std::vector<Element> elements)
      : Member(shared, "client" + std::to_string(number), 100 + number),
        elements_(std::move(elements)) {}
  void stop(Duration) override { stop_.request_stop(); }

 private:
  void work(Runtime&) override;
  void take(Runtime&, const Element&);
  void store(Runtime&, const Element&);
  void decide(Runtime&, const Element&);
  void resolve(Runtime&, const RunId&);
  /// Waits a while until the run is where the person can do something.
  bool comes_to(Runtime&, const RunId&, Do);

  const std::vector<Element> elements_;
  std::stop_source stop_;  ///< of the element that it is at
};

}  // namespace holdfast::sim
