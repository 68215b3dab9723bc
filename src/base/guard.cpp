#include "base/guard.hpp"

#ifdef HOLDFAST_TESTING

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/log.hpp"
#include "holdfast/failure.hpp"

namespace holdfast {
namespace {

template <class Visit>
void each_part(std::string_view list, char separator, const Visit& visit) {
  while (!list.empty()) {
    const std::size_t end = list.find(separator);
    const std::string_view part = list.substr(0, end);
    if (!part.empty()) visit(part);
    if (end == std::string_view::npos) return;
    list.remove_prefix(end + 1);
  }
}

int parse_count(std::string_view text, std::string_view part) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw std::invalid_argument(fmt::format("failpoint \"{}\": \"{}\" is no count", part, text));
  }
  return value;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

struct FailpointSet::Point {
  enum class Action { kill, stop, pause, error };
  Action action = Action::error;
  std::chrono::milliseconds pause{};
  std::optional<int> only;  ///< at this passing alone
  std::atomic<int> passed = 0;
};

FailpointSet::FailpointSet(std::string_view list) {
  each_part(list, ';', [&](std::string_view part) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      throw std::invalid_argument(fmt::format("failpoint \"{}\": expected NAME=ACTION", part));
    }
    auto point = std::make_unique<Point>();
    std::string_view action = part.substr(equals + 1);
    if (const std::size_t at = action.find('@'); at != std::string_view::npos) {
      point->only = parse_count(action.substr(at + 1), part);
      action = action.substr(0, at);
    }
    if (action == "kill") {
      point->action = Point::Action::kill;
    } else if (action == "stop") {
      point->action = Point::Action::stop;
    } else if (action == "error") {
      point->action = Point::Action::error;
    } else if (action.starts_with("pause:")) {
      point->action = Point::Action::pause;
      point->pause = std::chrono::milliseconds(parse_count(action.substr(6), part));
    } else {
      throw std::invalid_argument(fmt::format(
          "failpoint \"{}\": no action \"{}\" (kill, stop, pause:MS, error)", part, action));
    }
    points_.insert_or_assign(std::string(part.substr(0, equals)), std::move(point));
  });
}

FailpointSet::~FailpointSet() = default;
FailpointSet::FailpointSet(FailpointSet&&) noexcept = default;

void FailpointSet::pass(std::string_view name) const {
  const auto found = points_.find(name);
  if (found == points_.end()) return;
  Point& point = *found->second;
  const int passing = ++point.passed;
  if (point.only && *point.only != passing) return;
  switch (point.action) {
    case Point::Action::kill:
      ::kill(::getpid(), SIGKILL);
      return;
    case Point::Action::stop:
      ::raise(SIGSTOP);
      return;
    case Point::Action::pause:
      std::this_thread::sleep_for(point.pause);
      return;
    case Point::Action::error:
      throw StoreError(fmt::format("failpoint {}", name), false);
  }
}

bool guard_is_off(std::string_view name) {
  static const std::set<std::string, std::less<>> off = [] {
    std::set<std::string, std::less<>> names;
    const std::string list = environment("HOLDFAST_GUARDS_OFF");
    each_part(list, ',', [&](std::string_view part) { names.emplace(part); });
    return names;
  }();
  return !off.empty() && off.contains(name);
}

void pass_failpoint(std::string_view name) {
  static const FailpointSet points = [] {
    try {
      return FailpointSet(environment("HOLDFAST_FAILPOINTS"));
    } catch (const std::exception& problem) {
      // A test that trips nothing because of a typing error would prove nothing.
      log(LogLevel::error, problem.what());
      std::abort();
    }
  }();
  points.pass(name);
}

}  // namespace holdfast

#endif
