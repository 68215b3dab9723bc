#pragma once

#include <string>
#include <vector>

#include "chaos/scene.hpp"

namespace holdfast::chaos {

/// What came of it, read from the store and from the ledger outside it.
struct Report {
  int runs = 0;
  int steps = 0;                        ///< recorded
  std::vector<std::string> lost;        ///< acknowledged runs that are not there or did not end
  std::vector<std::string> duplicates;  ///< writes that started twice; keys with two runs
  std::vector<std::string> paid_again;  ///< paid calls begun after their result was recorded
  int repeated = 0;      ///< paid calls begun again because the one before was interrupted
  int dead_letters = 0;  ///< writes of unknown outcome that a person had to look at
  int expired = 0;       ///< runs taken by the end of their lease: of workers frozen or cut off
  int by_presence = 0;   ///< verdicts that did not wait for the lease
  std::vector<Duration> detection;  ///< from a SIGKILL to the verdict on each run of the killed
  std::vector<Duration> recovery;   ///< … and to its next claim

  std::string text(const Log& log, unsigned seed, milliseconds length) const;
};

Report judge(Scene& scene);

}  // namespace holdfast::chaos
