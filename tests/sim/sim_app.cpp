// sim: runs simulated histories over the production code. `sim --help` says how.

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/log.hpp"
#include "sim/exhaustive.hpp"
#include "sim/last_words.hpp"
#include "sim/shrink.hpp"
#include "sim/wanted.hpp"

namespace {

using namespace holdfast::sim;  // NOLINT(google-build-using-namespace)

constexpr const char* kUsage =
    "usage: sim [--trace] [--tally] [--complete] [--first] [--no-shrink] --seed N | --seeds A..B | "
    "--plan FILE | "
    "--exhaustive P,F\n"
    "  --seed N      one history; twice the same N is twice the same history\n"
    "  --show N      its plan\n"
    "  --seeds A..B  all of these\n"
    "  --plan FILE   one plan a line, as a failing history prints it; lines that begin with # are "
    "not read\n"
    "  --exhaustive P,F\n"
    "                every history of a small world with at most P preemptions and F faults\n"
    "  --trace       tell every call of the store and every event\n"
    "  --tally       tell at the end how often what happened\n"
    "  --complete    fail where something that must happen never did\n"
    "  --first       stop at the first that breaks something\n"
    "  --no-shrink   print a failing history as it is\n"
    "It prints what is broken by its name, then the plan that breaks it, and exits with 1.\n";

constexpr int kShrinkTries = 300;

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument(fmt::format("\"{}\" is no number", text));
  }
  return value;
}

class Program {
 public:
  int run(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const auto value = [&] {
        if (++i >= argc) throw std::invalid_argument(word + " needs a value");
        return std::string(argv[i]);
      };
      if (word == "--trace") {
        onlooker_ = [](const std::string& line) { fmt::print("{}\n", line); };
      } else if (word == "--tally") {
        tells_tally_ = true;
      } else if (word == "--complete") {
        needs_all_ = true;
      } else if (word == "--first") {
        stops_ = true;
      } else if (word == "--no-shrink") {
        shrinks_ = false;
      } else if (word == "--seed") {
        is_single_ = true;
        take(make_plan(number(value())));
      } else if (word == "--show") {
        fmt::print("{}\n", to_text(make_plan(number(value()))));
        return 0;
      } else if (word == "--seeds") {
        seeds(value());
      } else if (word == "--plan") {
        plans(value());
      } else if (word == "--exhaustive") {
        exhaust(value());
      } else {
        throw std::invalid_argument(word == "--help" ? "" : "there is no " + word);
      }
    }
    if (histories_ == 0) throw std::invalid_argument("nothing to run");
    if (tells_tally_) {
      for (const auto& [name, count] : tally_) fmt::print("{:>10} {}\n", count, name);
    }
    fmt::print("{} histories, {} bad\n", histories_, bad_);
    return bad_ == 0 && is_complete() ? 0 : 1;
  }

 private:
  bool is_complete() const {
    bool all = true;
    for (const char* name : kWanted) {
      if (!needs_all_ || tally_.contains(name)) continue;
      all = false;
      fmt::print("never: {}\n", name);
    }
    return all;
  }

  void seeds(const std::string& range) {
    const auto dots = range.find("..");
    if (dots == std::string::npos) throw std::invalid_argument("seeds are given as A..B");
    const std::uint64_t last = number(range.substr(dots + 2));
    for (std::uint64_t seed = number(range.substr(0, dots)); seed <= last; ++seed) {
      take(make_plan(seed));
    }
  }

  void plans(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw std::invalid_argument("cannot read " + file);
    for (std::string line; std::getline(in, line);) {
      if (!line.empty() && line.front() != '#') take(parse_plan(line));
    }
  }

  void exhaust(const std::string& text) {
    const auto comma = text.find(',');
    if (comma == std::string::npos) throw std::invalid_argument("bounds are given as P,F");
    Bound bound;
    bound.preemptions = static_cast<int>(number(text.substr(0, comma)));
    bound.faults = static_cast<int>(number(text.substr(comma + 1)));
    const Search found = search(small_world(), bound, threads_, onlooker_);
    fmt::print("{} preemptions, {} faults: {} histories, {}\n", bound.preemptions, bound.faults,
               found.histories, found.is_complete ? "all there are" : "not all");
    histories_ += static_cast<int>(found.histories);
    if (found.failed.is_good()) return;
    ++bad_;
    fmt::print("{}\n", to_text(found.failed));
  }

  void take(const Plan& plan) {
    if (stops_ && bad_ > 0) return;
    ++histories_;
    const Report report = [&] {
      const LastWords last_words(plan.seed);
      return run_history(plan, threads_, {nullptr, {}, onlooker_});
    }();
    for (const auto& [name, count] : report.happened) tally_[name] += count;
    if (report.is_good()) {
      if (is_single_) fmt::print("seed {}: {}\n", plan.seed, to_text(report));
      return;
    }
    ++bad_;
    fmt::print("seed {}: {}\n", plan.seed, to_text(report));
    Plan told = plan;
    if (shrinks_) {
      told = shrink(plan, report.violations.front().name, threads_, kShrinkTries);
      fmt::print("smaller: {}\n", to_text(run_history(told, threads_)));
    }
    fmt::print("plan: {}\n", to_text(told));
    std::fflush(stdout);
  }

  SimThreads threads_;
  Onlooker onlooker_;
  Tally tally_;
  bool tells_tally_ = false;
  bool needs_all_ = false;
  bool shrinks_ = true;
  bool stops_ = false;
  bool is_single_ = false;
  int histories_ = 0;
  int bad_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  holdfast::set_log_level(holdfast::LogLevel::off);
  try {
    return Program().run(argc, argv);
  } catch (const std::exception& error) {
    if (*error.what() != '\0') fmt::print(stderr, "sim: {}\n", error.what());
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
}
