// The file of a scripted provider: what is accepted can be answered from.

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fuzz/fuzz.hpp"
#include "provider/providers.hpp"
#include "support/fake_env.hpp"

using namespace holdfast;
using fuzz::expect;

namespace {

constexpr int kTurns = 4;

/// One file, written anew for each input.
const std::string& script_path() {
  static const std::string path = [] {
    const std::string file =
        std::filesystem::temp_directory_path() / ("holdfast-fuzz-" + std::to_string(::getpid()));
    static const struct Remover {
      std::string file;
      ~Remover() { ::unlink(file.c_str()); }
    } remover{file};
    return file;
  }();
  return path;
}

void check_turns(Provider& provider, const ProviderSpec& spec) {
  ModelRequest request;
  request.run = "run";
  for (int turn = 0; turn < kTurns; ++turn) {
    // Twice: what the script lets fail first, and what comes after that.
    for (int call = 0; call < 2; ++call) {
      try {
        const ModelReply reply = provider.complete("demo", request, {});
        expect(!reply.finish.empty() && reply.provider == spec.name, "an answer is whole");
        expect(reply.calls.empty() || reply.finish == "tool_calls", "calls are told as calls");
        expect(reply.usage.total_tokens > 0, "an answer costs tokens");
      } catch (const FailureError& error) {
        expect(!error.failure().message.empty() && fuzz::is_utf8(error.failure().message),
               "a failure says what failed", error.failure().message);
        expect(error.failure().provider == spec.name, "a failure names its provider");
      }
    }
    request.messages.push_back({.role = Message::Role::assistant});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ProviderSpec spec;
  spec.name = "main";
  spec.kind = "scripted";
  spec.script = script_path();
  std::ofstream(spec.script, std::ios::binary | std::ios::trunc) << fuzz::text_of(data, size);
  holdfast::testing::FakeEnv env;
  try {
    check_turns(*make_scripted(spec, env), spec);
  } catch (const RefusedError& error) {
    expect(error.refusal() == Refusal::usage, "a wrong script is wrong usage", error.what());
    expect(fuzz::contains(error.what(), spec.script), "a refusal names the script", error.what());
    expect(fuzz::is_safe_line(error.what()), "a refusal can be shown", error.what());
    expect(std::string_view(error.what()).size() < 1024, "a refusal is a sentence", error.what());
  }
  return 0;
}
