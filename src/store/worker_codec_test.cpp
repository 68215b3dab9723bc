#include "store/worker_codec.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

TEST(WorkerCodec, ReadsWhatItWrote) {
  WorkerRow row;
  row.name = "n";
  row.host = "h";
  row.pid = 7;
  row.started_at = WallTime(Duration(1'790'000'000'000));
  row.agents = {"a", "b"};
  row.queues = {"q"};
  row.slots = 4;
  row.busy = 2;
  row.stuck = 1;
  row.presence = "held";
  const Json json = encode(row);
  EXPECT_EQ(encode(decode_worker(json)), json);
  for (const auto& [key, value] : json.items()) EXPECT_NE(value, encode(WorkerRow{})[key]) << key;
}

TEST(WorkerCodec, ADamagedRowKeepsDefaults) {
  for (const char* text : {"\"w\"", "7", "null", "[]", "{}",
                           R"({"name":1,"host":[],"pid":"7","started_at":"now","agents":"a",
                               "queues":[1,{}],"slots":null,"busy":true,"stuck":{},"presence":0})"}) {
    EXPECT_EQ(encode(decode_worker(Json::parse(text))), encode(WorkerRow{})) << text;
  }
  EXPECT_EQ(decode_worker(Json::parse(R"({"agents":["a",1,"b"],"pid":7})")).agents.size(), 2u);
}

}  // namespace
}  // namespace holdfast
