// URLs of stores. The password is where a person would write it, between a user and a host or among
// the options; no message and nothing shown may repeat it.

#include "fuzz/fuzz.hpp"
#include "holdfast/runtime.hpp"
#include "store/postgres/url.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

constexpr std::string_view kPassword = "hunter2-swordfish";

int digit(char c) {
  const auto at = std::string_view("0123456789abcdef").find(lower_case({&c, 1}));
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

/// Can the text be shown as the password, where it stands for something else? `%68unter` is too.
bool tells_password(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    plain += is_escape ? static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2])) : text[i];
    if (is_escape) i += 2;
  }
  return fuzz::contains(plain, kPassword);
}

/// The URL may be refused, but only as wrong usage.
void check(const std::string& url, bool has_password) {
  const auto keeps = [&](const std::string& text) {
    expect(!has_password || !fuzz::contains(text, kPassword), "no password is shown", text);
    expect(fuzz::is_safe_line(text), "what is shown can be shown", text);
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
  check(text, false);
  std::string_view rest = text;
  const std::string before(fuzz::take_until(rest, "\n"));
  // A host or a database may have the name of the password: then it is shown.
  if (tells_password(rest)) return 0;
  const std::string password = before + std::string(kPassword);
  check("postgresql://u:" + password + "@" + std::string(rest), true);
  check("postgresql://" + std::string(rest) + "?password=" + std::string(kPassword), true);
  return 0;
}
