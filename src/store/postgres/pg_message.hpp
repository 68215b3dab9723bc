#pragma once

#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/time.hpp"

namespace holdfast::postgres {

/// Runs that differ in nothing that matters to who is to look for them.
struct Kind {
  std::string agent;  ///< empty: any
  std::string queue;  ///< empty: any
  auto operator<=>(const Kind&) const = default;
};

/// What was put on the queue, and how many.
using Queued = std::map<Kind, int>;

/// What one claiming thread executes.
struct Service {
  std::set<std::string> agents;
  std::set<std::string> queues;  ///< empty: all
  bool has_all_agents = false;   ///< said where there are too many to be told

  bool may_serve(const Kind&) const;
  bool operator==(const Service&) const = default;
};

/// What one process says to all that listen. The server delivers words to everybody in one order.
struct Message {
  struct Told {
    Kind kind;
    int runs = 0;  ///< 0: some
    bool operator==(const Told&) const = default;
  };

  std::string from;
  std::int64_t number = 0;  ///< tells apart what one process says
  std::vector<Told> queued;
  std::optional<std::vector<Service>> here;  ///< what it has an idle worker for
  std::vector<std::string> missed;           ///< processes that had the turn and did not look
  bool asks = false;                         ///< who else is here
  bool leaves = false;

  bool operator==(const Message&) const = default;
};

/// Fits into a notification, if need be by saying less exactly what it is about. Begins with
/// `SENDER AGENT AGENT…`, which is all that older versions know.
std::string encode(const Message&);
/// Also what older versions say, and an application in SQL: `sql AGENT`. `session` tells apart who
/// says the same.
Message decode_message(std::string_view payload, int session);

}  // namespace holdfast::postgres
