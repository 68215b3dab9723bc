#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/postgres/pg_message.hpp"

namespace holdfast::postgres {

/// Whose turn it is to look for runs that were put on the queue: one idle process for one run.
/// Pure: messages in, messages out, time is handed in. One thread at a time.
///
/// Every process says what it has an idle worker for (`here`), so that each knows the others. Each
/// message that tells of runs puts those that are idle for them into an order, another one every
/// time and the same for all that know the same; as many as there are runs have the turn. Who has
/// it and nobody idle after all says so, and is passed over, for this and for what comes. The one
/// behind the last that has the turn looks a moment later; where it still finds something, those
/// before it are dead or frozen, and it says that it missed them. So knowing too little of the
/// others costs a look in vain, and knowing too much a moment; the rest is found by the looks that
/// every idle worker takes now and then.
class Turns {
 public:
  explicit Turns(std::string name) : name_(std::move(name)) {}

  /// All that this process executes, idle for it or not. Of other runs it takes no notice.
  void serve(std::vector<Service>);
  const std::vector<Service>& services() const { return services_; }
  /// What the others are to believe that it has an idle worker for.
  void offer(std::vector<Service>);
  const std::vector<Service>& offers() const { return offers_; }

  void hear(const Message&, StoreTime now);

  /// This process's part of what was told.
  struct Turn {
    Kind kind;
    int runs = 0;
    bool is_sure = false;  ///< they were there, and nobody else is to take these
  };
  /// Each is told once.
  std::vector<Turn> take_turns(StoreTime now);
  /// When to ask again, without hearing anything.
  std::optional<StoreTime> next_turn() const;

  /// A look found something or nothing.
  void looked(bool is_due);
  /// Nobody knows how many there are of something that was this process's turn lately.
  bool may_have_left_some() const;

  /// What the others are to hear: who had the turn and did not take it.
  std::vector<std::string> take_missed() { return std::exchange(missed_untold_, {}); }
  bool has_missed_untold() const { return !missed_untold_.empty(); }
  /// And what this one offers.
  bool is_here_untold() const { return is_here_untold_; }
  void here_is_told() { is_here_untold_ = is_asked_ = false; }
  /// Somebody asked who is here. No haste: many may have.
  bool is_asked() const { return is_asked_; }
  bool has_peers() const { return !peers_.empty(); }

 private:
  struct Peer {
    std::vector<Service> offers;
    StoreTime heard_at{};
  };
  struct Call {
    std::string from;
    std::int64_t number = 0;
    Kind kind;
    int runs = 0;
    bool is_open = false;  ///< nobody said how many
    StoreTime heard_at{};
    bool is_taken = false;
    bool is_doubted = false;  ///< taken from those that had the turn, and not looked for yet
    int rank = 0;             ///< how many come before this process
    int size = 1;             ///< how many there are with it
  };

  bool is_before_us(const Call&, const std::string& name) const;
  bool counts(const Call&, const std::string& name, const Peer&) const;
  void rank(Call&) const;
  void rank_all();
  void set_offers(Peer&, std::vector<Service>);
  void miss(const std::vector<std::string>& names);

  const std::string name_;
  std::vector<Service> services_;
  std::vector<Service> offers_;
  std::map<std::string, Peer> peers_;
  std::deque<Call> calls_;  ///< in the order in which they came
  std::vector<std::string> missed_untold_;
  bool is_here_untold_ = false;
  bool is_asked_ = false;
};

}  // namespace holdfast::postgres
