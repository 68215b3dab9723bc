#include "store/postgres/url.hpp"

#include <gtest/gtest.h>

#include <string>

#include "holdfast/failure.hpp"

namespace holdfast::postgres {
namespace {

std::string refusal_of(const std::string& url) {
  try {
    return "accepted as " + parse_target(url).shown;
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal(), Refusal::usage);
    return error.what();
  }
}

TEST(PostgresUrl, IsShownAsOneLineWhateverIsEscapedInIt) {
  EXPECT_EQ(parse_target("postgresql://ann@h%0Aost/d%1Bb").shown, "postgresql://h\\nost/d\\x1bb");
  EXPECT_EQ(parse_target("postgresql://ann@h\xf5/%ff").shown, "postgresql://h\uFFFD/\uFFFD");
  EXPECT_EQ(parse_target("postgresql://ann@/d?host=a%e2%80%ae,b").shown,
            "postgresql://a\\u202e,b/d");
  EXPECT_EQ(redact_url("a\nb\xff"), "a\\nb\uFFFD");
}

TEST(PostgresUrl, APasswordThatWouldBePartOfAHostIsNotRepeated) {
  for (const char* url :
       {"postgresql://user:pa/SECRET@host/db", "postgresql://user:1/SECRET@host/db",
        "postgresql://user:pa?SECRET@host/db", "postgresql://user:pa@SECRET@host/db",
        "postgresql://user:pa/SECRET/db", "postgresql://host?dbname=1?password=SECRET"}) {
    const std::string said = refusal_of(url);
    EXPECT_EQ(said.find("SECRET"), std::string::npos) << said;
    EXPECT_EQ(said.find("accepted"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace holdfast::postgres
