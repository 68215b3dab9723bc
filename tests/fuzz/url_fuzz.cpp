// URLs of stores. The password is where a person would write it, between a user and a host or among
// the options; no message and nothing shown may repeat it.

#include "fuzz/fuzz.hpp"
#include "holdfast/runtime.hpp"
#include "store/postgres/url.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

constexpr std::string_view kPassword = "hunter2-swordfish";

/// The URL may be refused, but only as wrong usage.
void check(const std::string& url, bool has_password) {
  const auto keeps = [&](const std::string& text) {
    expect(!has_password || !fuzz::contains(text, kPassword), "no password is shown", text);
  };
  keeps(postgres::redact_url(url));
  if (!postgres::is_postgres_url(url)) return;
  try {
    const postgres::Target target = postgres::parse_target(url);
    keeps(target.shown);
    expect(!target.schema.empty() && target.schema.size() <= 50, "a schema has a name", url);
    for (const auto& [key, value] : target.settings) {
      expect(key != "schema" && key != "pooler" && key != "notify", "own options are taken out",
             key);
      expect(!fuzz::contains(value, std::string_view("\0", 1)), "a value ends where it ends", url);
    }
  } catch (const RefusedError& error) {
    expect(error.refusal() == Refusal::usage, "a URL is refused as wrong usage", url);
    keeps(error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  check(text, fuzz::contains(text, kPassword) && text.starts_with("postgresql://u:"));
  std::string_view rest = text;
  const std::string before(fuzz::take_until(rest, "\n"));
  const std::string password = before + std::string(kPassword);
  check("postgresql://u:" + password + "@" + std::string(rest), true);
  check("postgresql://" + std::string(rest) + "?password=" + std::string(kPassword), true);
  return 0;
}
