#include "sim/sim_store.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace holdfast::sim {
namespace {

const std::set<std::string> kReads = {"find",    "list",  "events",        "all_events",
                                      "stats",   "look",  "report_worker", "forget_worker",
                                      "workers", "audit", "circuits"};

}  // namespace

/// A presence that goes when its process is killed, or when it is dropped from outside.
class SimStore::Hold final : public PresenceHold {
 public:
  Hold(Board& board, std::unique_ptr<PresenceHold> inner);
  Hold(const Hold&) = delete;
  ~Hold() override;
  bool is_intact() override { return inner_ != nullptr; }
  void drop() { inner_.reset(); }

 private:
  Board& board_;
  std::unique_ptr<PresenceHold> inner_;
};

class SimStore::Board final : public PresenceBoard {
 public:
  Board(SimEnv& env, Faults& faults, PresenceBoard& inner)
      : env_(env), faults_(faults), inner_(inner) {}

  std::unique_ptr<PresenceHold> hold(const Identity& identity) override {
    env_.point();
    need_life(env_);
    auto hold = inner_.hold(identity);
    faults_.present(identity.id);
    return std::make_unique<Hold>(*this, std::move(hold));
  }
  std::vector<WorkerId> watch(Duration timeout, const std::stop_token& stop) override {
    env_.point();
    need_life(env_);
    auto suspects = inner_.watch(timeout, stop);
    need_life(env_);
    if (const auto wrongly = faults_.suspect()) suspects.push_back(*wrongly);
    return suspects;
  }
  std::unique_ptr<PresenceProof> prove_gone(const WorkerId& worker) override {
    env_.point();
    need_life(env_);
    return inner_.prove_gone(worker);
  }
  bool is_gone(const WorkerId& worker) override {
    env_.point();
    need_life(env_);
    return inner_.is_gone(worker);
  }
  void drop() {
    for (Hold* hold : holds_) hold->drop();
  }
  std::set<Hold*>& holds() { return holds_; }

 private:
  SimEnv& env_;
  Faults& faults_;
  PresenceBoard& inner_;
  std::set<Hold*> holds_;
};

SimStore::Hold::Hold(Board& board, std::unique_ptr<PresenceHold> inner)
    : board_(board), inner_(std::move(inner)) {
  board_.holds().insert(this);
}

SimStore::Hold::~Hold() { board_.holds().erase(this); }

SimStore::SimStore(Store& rows, SimEnv& env, Faults& faults, Hindrance& hindrance, Witness& witness,
                   bool has_presence)
    : PassingStore(rows),
      env_(env),
      faults_(faults),
      hindrance_(hindrance),
      witness_(witness),
      board_(has_presence ? std::make_unique<Board>(env, faults, *rows.presence()) : nullptr) {
  if (board_) hindrance_.drop_presence = [this] { board_->drop(); };
}

SimStore::~SimStore() { hindrance_.drop_presence = nullptr; }

PresenceBoard* SimStore::presence() { return board_.get(); }

void SimStore::wait_for_work(Duration max, const std::stop_token& stop) {
  need_life(env_);
  inner().wait_for_work(max, stop);
}

StoreTime SimStore::now() {
  const SimEnv::AtStore at_store(env_);
  return inner().now();
}

WallTime SimStore::wall_now() {
  const SimEnv::AtStore at_store(env_);
  return inner().wall_now();
}

void SimStore::around(StoreCall& call, const std::function<void()>& work) {
  faults_.pass(call.verb, false, hindrance_, true);
  const bool writes = !kReads.contains(call.verb);
  {
    const SimEnv::AtStore at_store(env_);
    if (writes) witness_.before(call);
    try {
      work();
    } catch (const std::logic_error& error) {
      witness_.escaped(call.verb, error.what());
      throw;
    }
    if (writes) witness_.after(call);
  }
  env_.trace(call.verb);
  env_.tell([&] {
    std::string text = call.verb;
    if (call.lease != nullptr) {
      text += fmt::format(" {} claim {}", call.lease->run.substr(24), call.lease->claim);
    }
    if (call.answer) text += fmt::format(" -> {}", static_cast<int>(*call.answer));
    return text;
  });
  if (call.answer) env_.trace(static_cast<std::uint64_t>(*call.answer));
  faults_.pass(call.verb, true, hindrance_, true);
}

}  // namespace holdfast::sim
