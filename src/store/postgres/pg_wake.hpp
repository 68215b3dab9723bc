#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "env/env.hpp"
#include "store/postgres/connection.hpp"
#include "store/store.hpp"
#include "store/verbs.hpp"
#include "store/work_signal.hpp"

namespace holdfast::postgres {

/// Tells idle workers that runs were put on the queue. Those of this process are told directly; the
/// others by one session for LISTEN and NOTIFY, only where nobody here is idle for them, at most
/// once in a while, and behind the commit, which it therefore never holds up. Without it (off,
/// lost, a pooler) workers look by themselves. Any thread.
class PgWake {
 public:
  PgWake(const Target&, Env&);
  PgWake(const PgWake&) = delete;
  /// Tells what is to be told still.
  ~PgWake();

  /// Runs were put on the queue by this process: how many of each agent.
  void announce(const std::map<std::string, int>& queued);
  void about_to_look() { signal_.about_to_look(); }
  void wait(Duration max, const std::stop_token& stop);

  /// What a look would say, where that is known: behind a claim that took as many as it wanted
  /// there is more; what a look that found nothing said holds until something is announced,
  /// something that it knew of falls due, or a while has passed.
  std::optional<verbs::Look> recall(const ClaimRequest&);
  std::uint64_t news() const { return news_; }
  void remember(const ClaimRequest&, const verbs::Look&, std::uint64_t news);
  /// The last look found nothing.
  bool found_nothing(const WorkerId&);
  /// A claim took as many as it wanted: the next need not look first.
  void remember_claim(const ClaimRequest&, std::size_t taken);

 private:
  struct Memory {
    std::uint64_t news = 0;
    StoreTime at{};
    std::optional<StoreTime> due_at;
    Duration lasts{};
    std::vector<std::string> agents;
    std::vector<std::string> queues;
  };

  bool is_anybody_idle_for(const std::string& agent, int runs) const;
  bool serves_any(const std::string& payload);
  void start();
  void ring() const;
  void serve();
  void serve_session(const std::stop_token& stop);
  bool tell(Connection&);
  void wake_here();

  const Target target_;
  Env& env_;
  const std::string sender_;
  WorkSignal signal_;
  std::atomic<std::uint64_t> news_{1};
  const int bell_;
  std::mutex mutex_;
  std::map<WorkerId, Memory> memories_;
  std::map<std::thread::id, std::vector<std::string>> agents_of_;
  std::map<std::thread::id, std::vector<std::string>> idle_;
  std::set<std::thread::id> waited_;  ///< since they looked
  std::set<WorkerId> full_;           ///< whose last claim took as many as it wanted
  std::set<std::string> served_;
  std::set<std::string> untold_;  ///< agents
  std::stop_source stopping_;
  bool is_missed_ = false;  ///< the thread's: it was said that there are none
  std::unique_ptr<Thread> thread_;
};

}  // namespace holdfast::postgres
