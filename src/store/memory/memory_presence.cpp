#include "store/memory/memory_presence.hpp"

namespace holdfast {

class MemoryPresence::Hold : public PresenceHold {
 public:
  Hold(MemoryPresence& board, WorkerId id) : board_(board), id_(std::move(id)) {}
  Hold(const Hold&) = delete;
  ~Hold() override { board_.release(id_); }

 private:
  MemoryPresence& board_;
  const WorkerId id_;
};

class MemoryPresence::Proof : public PresenceProof {
 public:
  Proof(MemoryPresence& board, WorkerId id) : board_(board), id_(std::move(id)) {}
  Proof(const Proof&) = delete;
  ~Proof() override {
    const std::lock_guard lock(board_.mutex_);
    board_.proven_.erase(id_);
    board_.suspects_.erase(id_);
  }

 private:
  MemoryPresence& board_;
  const WorkerId id_;
};

std::unique_ptr<PresenceHold> MemoryPresence::hold(const Identity& identity) {
  const std::lock_guard lock(mutex_);
  if (proven_.contains(identity.id) || !held_.insert(identity.id).second) {
    throw StoreError("the presence of worker " + identity.id + " is taken", false);
  }
  return std::make_unique<Hold>(*this, identity.id);
}

std::vector<WorkerId> MemoryPresence::watch(Duration timeout, const std::stop_token& stop) {
  const std::uint64_t seen = ended_->current();
  if (auto found = suspects(); !found.empty()) return found;
  ended_->wait_past(seen, timeout, stop);
  return suspects();
}

std::unique_ptr<PresenceProof> MemoryPresence::prove_gone(const WorkerId& id) {
  const std::lock_guard lock(mutex_);
  if (held_.contains(id) || !proven_.insert(id).second) return nullptr;
  return std::make_unique<Proof>(*this, id);
}

bool MemoryPresence::is_gone(const WorkerId& id) {
  const std::lock_guard lock(mutex_);
  return !held_.contains(id);
}

void MemoryPresence::release(const WorkerId& id) {
  {
    const std::lock_guard lock(mutex_);
    held_.erase(id);
    suspects_.insert(id);
  }
  ended_->notify_all();
}

std::vector<WorkerId> MemoryPresence::suspects() {
  const std::lock_guard lock(mutex_);
  return {suspects_.begin(), suspects_.end()};
}

}  // namespace holdfast
