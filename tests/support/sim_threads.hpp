#pragma once

// Threads that are handed the baton, and reused by the tasks of later histories.

#include <semaphore.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace holdfast::sim {

/// One owner, whose thread uses it; or whoever holds the baton that began there.
class SimThreads {
 public:
  /// A thread that waits for its baton.
  class Carrier {
   public:
    Carrier() { sem_init(&baton_, 0, 0); }
    Carrier(const Carrier&) = delete;
    ~Carrier() { sem_destroy(&baton_); }
    void give() { sem_post(&baton_); }
    void take() {
      while (sem_wait(&baton_) != 0) {
      }
    }

   private:
    friend class SimThreads;
    sem_t baton_{};
    std::function<void()> job_;  ///< empty when it is given the baton: the thread ends
    std::thread thread_;
  };

  SimThreads() = default;
  SimThreads(const SimThreads&) = delete;
  ~SimThreads() {
    for (const auto& carrier : all_) carrier->give();
    for (const auto& carrier : all_) carrier->thread_.join();
  }

  /// A waiting thread that does `job` once it is given the baton. The one that was given back last
  /// comes first, so that equal histories use equal threads.
  Carrier& hire(std::function<void()> job) {
    if (idle_.empty()) {
      all_.push_back(std::make_unique<Carrier>());
      Carrier* made = all_.back().get();
      made->thread_ = std::thread([made] { work(*made); });
      idle_.push_back(made);
    }
    Carrier& carrier = *idle_.back();
    idle_.pop_back();
    carrier.job_ = std::move(job);
    return carrier;
  }
  /// By the job itself, as its last act before it passes the baton on.
  void give_back(Carrier& carrier) { idle_.push_back(&carrier); }
  Carrier& owner() { return owner_; }

 private:
  static void work(Carrier& carrier) {
    for (;;) {
      carrier.take();
      if (!carrier.job_) return;
      const auto job = std::exchange(carrier.job_, nullptr);
      job();
    }
  }

  std::vector<std::unique_ptr<Carrier>> all_;
  std::vector<Carrier*> idle_;
  Carrier owner_;
};

}  // namespace holdfast::sim
