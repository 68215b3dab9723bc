#pragma once

// A history as data: who takes part, what they do and when, and what goes wrong. Made from a seed;
// elements can be taken out and the rest run again, which is how a failing history is made small.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/json.hpp"

namespace holdfast::sim {

/// Times are milliseconds of virtual time.
struct Settings {
  int workers = 2;
  int clients = 2;
  int concurrency = 2;
  int lease = 3000;
  int heartbeat = 900;  ///< 0: renewed at step boundaries only
  int reaper = 1000;
  int presence = 500;  ///< its interval; 0: there is none
  int max_requeues = 3;
  bool strict_expiry = false;
  bool by_queue = false;    ///< the second worker serves one queue only
  bool one_reaper = false;  ///< the first worker has none
  int skew = 0;             ///< how far processes' clocks may be apart from the store's
  int latency = 5;          ///< of a store call, at most
  int tool_trouble = 0;     ///< of 100 calls
  int model_trouble = 0;    ///< of 100 calls
  int suspicion = 0;        ///< of 100 looks for lost presence, those that suspect a living worker
  int preempt = 30;         ///< of 100 points at which a task could go on, those where another does
  int strategy = 0;         ///< 0: any task; 1: by priorities that change now and then
  int faults_until = 10000;
  bool ends_gracefully = false;
};

enum class Do {
  // What callers and people do; `subject` is the number of a run.
  enqueue,
  run,
  run_inline,
  cancel,
  approve,
  deny,
  input,
  redrive,
  resolve,
  wake,
  hand_over,
  purge,
  reap,
  // What goes wrong; `subject` is the number of a worker, or 100 and more: of a client; of a fault
  // with a place also kAnyWorker: whoever comes there first.
  kill,
  freeze,
  stop,
  start,
  drop_presence,
  store_error,
  store_slow,
  jump_wall,
  suspend
};

inline constexpr int kAnyWorker = 99;

struct Element {
  Do what = Do::enqueue;
  int at = 0;  ///< when, counted from the beginning; of a fault without a place
  int subject = 0;
  std::string place;   ///< of a fault: at this verb of the store, or `tool` or `model` …
  int nth = 1;         ///< … when the subject comes there for the n-th time after `at` …
  bool after = false;  ///< … before it or after it
  int length = 0;      ///< how long it lasts, or how far it goes
  Json detail;         ///< of a run: agent, script and so on
};

struct Plan {
  std::uint64_t seed = 0;
  Settings settings;
  std::vector<Element> elements;
};

Plan make_plan(std::uint64_t seed);
bool is_fault(Do);

/// One line of JSON, and back. Throws std::exception for what is none.
std::string to_text(const Plan&);
Plan parse_plan(const std::string& text);
std::string to_word(Do);

/// For everything in a simulation that is left to chance and is not the product's.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  int below(int limit) {
    return static_cast<int>(next() % static_cast<std::uint64_t>(limit < 1 ? 1 : limit));
  }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool percent(int chance) { return below(100) < chance; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace holdfast::sim
