#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "cli/commands.hpp"
#include "cli/support.hpp"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = R"(# Holdfast: see docs/configuration.md for every key.

[store]
url = "sqlite:holdfast.db"

# A provider that answers from a file: no key, no network. Replace it by a real one:
#
# [providers.main]
# kind        = "openai"                      # any server with the OpenAI chat API
# base_url    = "https://api.openai.com/v1"
# api_key_env = "OPENAI_API_KEY"              # the name of the variable, never the key
#
[providers.demo]
kind   = "scripted"
script = "hello.json"

[agents.hello]
models = ["demo/script"]
system = "You tell the time. Look at the clock first."
tools  = ["clock"]

[tools.clock]
kind        = "command"                       # JSON arguments on stdin, result on stdout
command     = ["./clock.sh"]
description = "The current time in UTC"
effect      = "read"                          # or idempotent_write, non_idempotent_write
timeout     = "10s"
parameters  = { type = "object", properties = {} }
)";

constexpr const char* kScript = R"([
  {"tool_calls": [{"name": "clock", "arguments": {}}]},
  {"reply": "I looked at the clock: Holdfast works. Now try a worker, and kill it."}
]
)";

constexpr const char* kTool = R"sh(#!/bin/sh
# A tool: JSON arguments on standard input, a result on standard output.
cat > /dev/null
printf '{"utc": "%s"}\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
)sh";

struct StarterFile {
  fs::path path;
  const char* content;
  bool is_program = false;
};

/// Makes a new file; never one that is there.
void write_new(const StarterFile& file) {
  const auto name = file.path.string();
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(name.c_str(), "wxe"),
                                                         std::fclose);
  if (!stream && errno == EEXIST) {
    throw RefusedError(Refusal::conflict,
                       fmt::format("{}: exists already; init overwrites nothing", name));
  }
  if (!stream || std::fputs(file.content, stream.get()) < 0 || std::fflush(stream.get()) != 0) {
    const auto why = std::string(std::strerror(errno));
    std::error_code ignored;
    if (stream) fs::remove(file.path, ignored);
    throw RefusedError(Refusal::usage, fmt::format("{}: cannot be written: {}", name, why));
  }
  if (file.is_program) {
    fs::permissions(file.path, fs::perms::owner_all | fs::perms::group_read |
                                   fs::perms::group_exec | fs::perms::others_read |
                                   fs::perms::others_exec);
  }
}

}  // namespace

int write_starter(Invocation& call) {
  const fs::path config = call.host.config_target();
  const auto folder = config.parent_path();
  const std::array<StarterFile, 3> files = {
      {{config, kConfig}, {folder / "hello.json", kScript}, {folder / "clock.sh", kTool, true}}};
  for (const auto& file : files) {
    std::error_code error;
    if (fs::exists(fs::symlink_status(file.path, error))) {
      throw RefusedError(Refusal::conflict, fmt::format("{}: exists already; init overwrites "
                                                        "nothing, and nothing was written",
                                                        file.path.string()));
    }
  }
  std::size_t written = 0;
  try {
    for (; written < files.size(); ++written) write_new(files[written]);
  } catch (...) {
    // All or nothing: what was made a moment ago goes again.
    for (std::size_t i = 0; i < written; ++i) {
      std::error_code ignored;
      fs::remove(files[i].path, ignored);
    }
    throw;
  }
  Json names = Json::array();
  for (const auto& file : files) names.push_back(file.path.string());
  if (call.out.json()) {
    call.out.value({{"files", names}});
  } else {
    for (const auto& name : names) call.out.line(safe_line(name.get<std::string>()));
    const auto option =
        config == "holdfast.toml" ? std::string() : fmt::format("--config {} ", config.string());
    call.out.note(fmt::format("next: holdfast {}run hello --input \"What time is it?\"", option));
  }
  return kDone;
}

}  // namespace holdfast
