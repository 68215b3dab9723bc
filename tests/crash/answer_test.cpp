// An answer that must meet a schema: the turn that mends it is paid for once, whoever dies.

#include <gtest/gtest.h>
#include <signal.h>

#include "crash/harness.hpp"

namespace holdfast::crash {
namespace {

TEST(Answers, WhatIsRecordedOfThemIsNotPaidAgainWhereverAWorkerDies) {
  for (const char* failpoint :
       {"model.before=kill@2", "model.after=kill@2", "settle.before=kill"}) {
    SCOPED_TRACE(failpoint);
    Settings settings;
    settings.more =
        "[agents.strict]\nmodels = [\"plain/m\"]\nanswer_schema = { type = \"integer\" }\n";
    Site site(settings);
    site.script("plain", Json::array({{{"reply", "seven"}}, {{"reply", "7"}}}));
    const std::string run = site.enqueue("strict");
    {
      Process worker = site.worker({}, {{"HOLDFAST_FAILPOINTS", failpoint}});
      ASSERT_EQ(worker.wait(seconds(30)), 128 + SIGKILL);
    }
    Process worker = site.worker();
    ASSERT_TRUE(site.reaches(run, "completed"));
    EXPECT_EQ(site.show(run).at("answer"), 7);
    EXPECT_EQ(site.count_events(run, EventKind::model), 2);
    worker.kill();
    site.expect_sound();
  }
}

}  // namespace
}  // namespace holdfast::crash
