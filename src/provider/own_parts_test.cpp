#include "provider/own_parts.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

const Target kMaker{"main", "m/1"};

Message message_of(const PartsWriter& parts) {
  Message message;
  message.role = Message::Role::assistant;
  message.text = "AB";
  message.calls.push_back({"1.1", "pay", Json::object(), {}});
  message.opaque = parts.kept("vendor");
  message.made_by = "main/m/1";
  return message;
}

PartsWriter four_parts() {
  PartsWriter parts;
  parts.add_own({{"signature", "x\xC3\xBC=="}});
  parts.add_text(1);
  parts.add_call({{"id", "fc_1"}});
  parts.add_text(1);
  return parts;
}

TEST(OwnParts, ComeBackAsTheyWereForTheirMaker) {
  const auto parts = own_parts(message_of(four_parts()), "vendor", kMaker);
  ASSERT_TRUE(parts.has_value());
  ASSERT_EQ(parts->size(), 4u);
  EXPECT_EQ((*parts)[0].kind, OwnPart::Kind::own);
  EXPECT_EQ((*parts)[0].value["signature"], "x\xC3\xBC==");
  EXPECT_EQ((*parts)[1].bytes, 1u);
  EXPECT_EQ((*parts)[2].kind, OwnPart::Kind::call);
  EXPECT_EQ((*parts)[2].value["id"], "fc_1");
}

TEST(OwnParts, AreForNobodyElse) {
  const Message message = message_of(four_parts());
  EXPECT_FALSE(own_parts(message, "vendor", {"main", "m/2"}));
  EXPECT_FALSE(own_parts(message, "vendor", {"other", "m/1"}));
  EXPECT_FALSE(own_parts(message, "another", kMaker)) << "the provider speaks another dialect now";
}

TEST(OwnParts, AreLeftOutWhereTheyNoLongerFitTheAnswer) {
  Message cut = message_of(four_parts());
  cut.text = "A";
  EXPECT_FALSE(own_parts(cut, "vendor", kMaker));
  Message longer = message_of(four_parts());
  longer.text = "ABC";
  EXPECT_FALSE(own_parts(longer, "vendor", kMaker));
  Message fewer = message_of(four_parts());
  fewer.calls.clear();
  EXPECT_FALSE(own_parts(fewer, "vendor", kMaker));
  for (const char* opaque :
       {"null", "7", "{}", R"({"dialect":"vendor"})", R"({"dialect":"vendor","parts":7})",
        R"({"dialect":"vendor","parts":[{"kind":"newer"}]})",
        R"({"dialect":"vendor","parts":[{"kind":"text","bytes":1e15}]})"}) {
    Message other = message_of(four_parts());
    other.opaque = Json::parse(opaque);
    EXPECT_FALSE(own_parts(other, "vendor", kMaker)) << opaque;
  }
}

TEST(OwnParts, AreKeptOnlyWhereThereIsSomethingToKeep) {
  PartsWriter plain;
  plain.add_text(1);
  plain.add_text(1);
  plain.add_call();
  EXPECT_TRUE(plain.kept("vendor").is_null());
  PartsWriter joined;
  joined.add_own({{"a", 1}});
  joined.add_text(1);
  joined.add_text(2);
  EXPECT_EQ(joined.kept("vendor")["parts"].size(), 2u);
}

}  // namespace
}  // namespace holdfast
