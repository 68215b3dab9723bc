#include "store/postgres/pg_turns.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::postgres {
namespace {

/// Longer than a claim takes, and the word of those that have nobody idle.
constexpr Duration kSecondAfter = std::chrono::milliseconds(25);
/// What came of a message is settled by then, or left to looks.
constexpr Duration kCallLasts = std::chrono::milliseconds(250);
/// More than two messages of a process that lives.
constexpr Duration kGoneAfter = std::chrono::seconds(50);
constexpr std::size_t kMostCalls = 256;
constexpr int kMostRuns = 1'000'000;
constexpr std::size_t kMostMissed = 100;

/// The same on every machine.
std::uint64_t mixed(const std::string& from, std::int64_t number, const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u ^ static_cast<std::uint64_t>(number);
  for (const std::string* text : {&from, &name}) {
    for (const char c : *text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    hash = (hash ^ 0xffu) * 0x100000001b3u;
  }
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

bool may_serve(const std::vector<Service>& services, const Kind& kind) {
  return std::ranges::any_of(services, [&](const Service& one) { return one.may_serve(kind); });
}

}  // namespace

void Turns::serve(std::vector<Service> services) {
  services_ = std::move(services);
  std::vector<Service> left = offers_;
  std::erase_if(left, [&](const Service& one) {
    return std::ranges::find(services_, one) == services_.end();
  });
  offer(std::move(left));
}

void Turns::offer(std::vector<Service> offers) {
  if (offers == offers_) return;
  offers_ = std::move(offers);
  is_here_untold_ = true;
}

bool Turns::is_before_us(const Call& call, const std::string& name) const {
  return std::pair(mixed(call.from, call.number, name), name) <
         std::pair(mixed(call.from, call.number, name_), name_);
}

/// Who told of it had nobody idle.
bool Turns::counts(const Call& call, const std::string& name, const Peer& peer) const {
  return name != call.from && may_serve(peer.offers, call.kind);
}

void Turns::rank(Call& call) const {
  call.rank = 0;
  call.size = 1;
  for (const auto& [name, peer] : peers_) {
    if (!counts(call, name, peer)) continue;
    ++call.size;
    if (is_before_us(call, name)) ++call.rank;
  }
}

void Turns::rank_all() {
  for (Call& call : calls_) {
    if (!call.is_taken) rank(call);
  }
}

void Turns::set_offers(Peer& peer, std::vector<Service> offers) {
  for (Call& call : calls_) {
    // Who is idle no longer may be so for all that it took of them.
    const bool was_lost = may_serve(peer.offers, call.kind) && !may_serve(offers, call.kind);
    if (call.is_open && was_lost) call.runs = std::min(2 * call.runs, kMostRuns);
  }
  peer.offers = std::move(offers);
}

void Turns::miss(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == name_) {
      offers_.clear();
    } else if (const auto peer = peers_.find(name); peer != peers_.end()) {
      set_offers(peer->second, {});
    }
  }
}

void Turns::hear(const Message& message, StoreTime now) {
  if (message.from == name_) return;
  const auto gone = std::erase_if(
      peers_, [&](const auto& one) { return now - one.second.heard_at > kGoneAfter; });
  if (message.leaves) {
    peers_.erase(message.from);
  } else if (message.here) {
    set_offers(peers_[message.from], *message.here);
  }
  if (const auto peer = peers_.find(message.from); peer != peers_.end()) {
    peer->second.heard_at = now;
  }
  miss(message.missed);
  if (gone > 0 || message.leaves || message.here || !message.missed.empty()) rank_all();
  is_asked_ = is_asked_ || message.asks;
  for (const auto& told : message.queued) {
    if (!may_serve(services_, told.kind)) continue;
    if (calls_.size() == kMostCalls) calls_.pop_front();
    calls_.push_back({message.from, message.number, told.kind, std::clamp(told.runs, 1, kMostRuns),
                      told.runs <= 0, now});
    rank(calls_.back());
  }
}

std::vector<Turns::Turn> Turns::take_turns(StoreTime now) {
  while (!calls_.empty() && now - calls_.front().heard_at > kCallLasts) calls_.pop_front();
  std::vector<Turn> turns;
  for (Call& call : calls_) {
    if (call.is_taken) continue;
    if (call.rank < call.runs) {
      call.is_taken = true;
      // One each, then a second for the first again.
      turns.push_back(
          {call.kind, (call.runs - call.rank + call.size - 1) / call.size, !call.is_open});
    } else if (call.rank == call.runs && now - call.heard_at >= kSecondAfter) {
      call.is_taken = call.is_doubted = true;
      turns.push_back({call.kind, 1, false});
    }
  }
  return turns;
}

std::optional<StoreTime> Turns::next_turn() const {
  for (const Call& call : calls_) {
    if (!call.is_taken && call.rank == call.runs) return call.heard_at + kSecondAfter;
  }
  return std::nullopt;
}

void Turns::looked(bool is_due) {
  std::vector<std::string> missed;
  for (Call& call : calls_) {
    if (!std::exchange(call.is_doubted, false) || !is_due) continue;
    for (const auto& [name, peer] : peers_) {
      if (counts(call, name, peer) && is_before_us(call, name)) missed.push_back(name);
    }
  }
  if (missed.empty() || missed_untold_.size() + missed.size() > kMostMissed) return;
  miss(missed);
  rank_all();
  missed_untold_.insert(missed_untold_.end(), missed.begin(), missed.end());
}

bool Turns::may_have_left_some() const {
  return std::ranges::any_of(calls_,
                             [](const Call& call) { return call.is_taken && call.is_open; });
}

}  // namespace holdfast::postgres
