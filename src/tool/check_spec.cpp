#include "tool/check_spec.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "core/validate.hpp"
#include "net/http.hpp"
#include "tool/command.hpp"
#include "tool/http_tool.hpp"
#include "tool/toolbox.hpp"
#include "tool/url_template.hpp"

namespace holdfast {
namespace {

[[noreturn]] void refuse(const ToolSpec& spec, const std::string& what) {
  throw RefusedError(Refusal::usage, fmt::format("tool '{}': {}", spec.name, what));
}

/// What every model API takes.
bool is_tool_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

bool has_null(const std::string& text) { return text.find('\0') != std::string::npos; }

void check_command(const ToolSpec& spec, const char* key, const std::vector<std::string>& command) {
  if (command.empty()) return;
  if (command.front().empty()) {
    refuse(spec, fmt::format("`{}` begins with an empty program name", key));
  }
  if (std::any_of(command.begin(), command.end(), has_null)) {
    refuse(spec, fmt::format("`{}` holds a null character", key));
  }
}

void check_variable(const ToolSpec& spec, const char* key, const std::string& name) {
  if (name.empty() || has_null(name) || name.find('=') != std::string::npos) {
    refuse(spec,
           fmt::format("`{}` holds '{}', which cannot name a variable", key, clean_utf8(name)));
  }
}

void check_schema(const ToolSpec& spec, const char* key, const Json& schema) {
  if (!schema.is_object()) refuse(spec, fmt::format("`{}` must be a JSON Schema object", key));
  if (schema.contains("type") && schema["type"] != "object") {
    refuse(spec, fmt::format("`{}` must describe an object: set its type to \"object\"", key));
  }
  const std::string problem = schema_problem(schema);
  if (!problem.empty()) refuse(spec, fmt::format("`{}` is no usable schema: {}", key, problem));
}

bool is_http_method(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "POST" || method == "PUT" ||
         method == "PATCH" || method == "DELETE";
}

bool is_header_name(const std::string& name) {
  constexpr std::string_view kAlso = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kAlso.find(c) != kAlso.npos;
  });
}

void check_http(const ToolSpec& spec) {
  const HttpToolSpec& http = *spec.http;
  if (!is_http_method(http.method)) {
    refuse(spec, "`method` is GET, HEAD, POST, PUT, PATCH or DELETE");
  }
  const std::string problem = url_template_problem(http.url, spec.parameters);
  if (!problem.empty()) refuse(spec, "`url` " + problem);
  const auto check_header = [&](const std::string& name) {
    if (is_header_name(name)) return;
    refuse(spec, fmt::format("'{}' cannot name a header", clean_utf8(name)));
  };
  for (const auto& [name, value] : http.headers) {
    check_header(name);
    if (value.find_first_of("\r\n") != value.npos || has_null(value)) {
      refuse(spec, fmt::format("the header '{}' holds a line break or a null character", name));
    }
  }
  for (const auto& [name, variable] : http.header_env) {
    check_header(name);
    check_variable(spec, "header_env", variable);
  }
  if (!http.bearer_env.empty()) check_variable(spec, "bearer_env", http.bearer_env);
  if (http.connect_timeout <= Duration::zero()) refuse(spec, "`connect_timeout` must be above 0s");
}

bool folder_exists(const std::string& folder) {
  struct stat info {};
  return stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string path_for(const ToolSpec& spec) {
  const auto it = spec.env.find("PATH");
  if (it != spec.env.end()) return it->second;
  const char* path = std::getenv("PATH");
  return path ? path : "/usr/local/bin:/usr/bin:/bin";
}

/// The interpreter that a script names and that is not there; empty: none, or it is there.
std::string missing_interpreter(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  char line[256] = {};
  stream.read(line, sizeof line - 1);
  std::string text(line, static_cast<std::size_t>(stream.gcount()));
  if (text.rfind("#!", 0) != 0) return {};
  const std::size_t start = text.find_first_not_of(" \t", 2);
  if (start == std::string::npos) return {};
  const std::string program = text.substr(start, text.find_first_of(" \t\r\n", start) - start);
  return std::filesystem::exists(program) ? std::string() : program;
}

/// Empty: it can be started, as far as can be told without starting it.
std::string program_problem(const ToolSpec& spec, const std::string& program) {
  const std::string found = find_program(program, spec.working_folder, path_for(spec));
  if (found.empty()) {
    const bool is_path = program.find('/') != std::string::npos;
    return is_path ? fmt::format(
                         "'{}' is missing or not executable (seen from '{}'): check its "
                         "path, or make it executable with chmod +x",
                         program, spec.working_folder.empty() ? "." : spec.working_folder.c_str())
                   : fmt::format("'{}' is not in PATH: install it, or name it with its folder",
                                 program);
  }
  const auto file = std::filesystem::path(spec.working_folder) / found;
  const std::string interpreter = missing_interpreter(file.string());
  if (interpreter.empty()) return {};
  return fmt::format("'{}' names the interpreter '{}', which is missing: mend its first line",
                     program, interpreter);
}

bool is_local(const std::string& origin) {
  const std::string host = origin.substr(origin.find("://") + 3);
  return host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]");
}

std::string missing_secret(const HttpToolSpec& http) {
  for (const std::string& name : secret_names(http)) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return name;
  }
  return {};
}

Finding check_http_tool(const ToolSpec& spec, const std::vector<std::string>& hosts) {
  const HttpToolSpec& http = *spec.http;
  const std::string origin = origin_of(http.url);
  Finding finding{Finding::Grade::bad, "tool " + spec.name, {}};
  if (!is_host_listed(http.url, hosts)) {
    finding.text = fmt::format("[http] hosts does not list {}: no call would be sent", origin);
    return finding;
  }
  if (const std::string name = missing_secret(http); !name.empty()) {
    finding.text = fmt::format(
        "the environment variable {} is not set: set it to what the header "
        "is to hold",
        name);
    return finding;
  }
  finding.grade = Finding::Grade::warning;
  const bool has_secret = !http.bearer_env.empty() || !http.header_env.empty();
  if (has_secret && origin.starts_with("http://") && !is_local(origin)) {
    finding.text = fmt::format("its secret would travel unencrypted to {}: use https://", origin);
    return finding;
  }
  if (const std::string problem = connection_problem(origin, http.connect_timeout);
      !problem.empty()) {
    finding.text = fmt::format("{} cannot be reached from here: {}", origin, problem);
    return finding;
  }
  finding.grade = Finding::Grade::ok;
  finding.text = fmt::format("{} {} can be reached", http.method, origin);
  return finding;
}

}  // namespace

void check_tool_spec(const ToolSpec& spec) {
  if (!is_tool_name(spec.name)) {
    throw RefusedError(Refusal::usage,
                       fmt::format("'{}' cannot name a tool: use 1 to 64 letters, digits, _ and -",
                                   clean_utf8(spec.name)));
  }
  const int ways = (spec.command.empty() ? 0 : 1) + (spec.http ? 1 : 0) + (spec.function ? 1 : 0);
  if (ways == 0) refuse(spec, "it needs a `command`, an HTTP call or a function");
  if (ways > 1) refuse(spec, "it has two of a `command`, an HTTP call and a function: keep one");
  if (spec.http) check_http(spec);
  if (!spec.probe_command.empty() && spec.probe) {
    refuse(spec, "it has both a probe command and a probe function: keep one");
  }
  check_command(spec, "command", spec.command);
  check_command(spec, "probe", spec.probe_command);
  for (const auto& [name, value] : spec.env) {
    check_variable(spec, "env", name);
    if (has_null(value)) refuse(spec, fmt::format("`env.{}` holds a null character", name));
  }
  for (const std::string& name : spec.pass_env) check_variable(spec, "pass_env", name);
  if (spec.timeout <= Duration::zero()) refuse(spec, "`timeout` must be above 0s");
  if (spec.approval_timeout && *spec.approval_timeout <= Duration::zero()) {
    refuse(spec, "`approval_timeout` must be above 0s");
  }
  check_schema(spec, "parameters", spec.parameters);
  if (!spec.input_schema.is_null()) check_schema(spec, "input", spec.input_schema);
}

Finding check_tool(const ToolSpec& spec, const std::vector<std::string>& hosts) {
  Finding finding;
  finding.subject = "tool " + spec.name;
  if (spec.function) {
    finding.text = "a function of this program";
    return finding;
  }
  if (spec.http) return check_http_tool(spec, hosts);
  finding.grade = Finding::Grade::bad;
  if (!spec.working_folder.empty() && !folder_exists(spec.working_folder)) {
    finding.text = fmt::format("its folder '{}' does not exist: create it", spec.working_folder);
    return finding;
  }
  finding.text =
      spec.command.empty() ? "it has no command" : program_problem(spec, spec.command[0]);
  if (!finding.text.empty()) return finding;
  if (!spec.probe_command.empty()) {
    finding.text = program_problem(spec, spec.probe_command[0]);
    if (!finding.text.empty()) {
      finding.text = "its probe " + finding.text;
      return finding;
    }
  }
  finding.grade = Finding::Grade::warning;
  for (const std::string& name : spec.pass_env) {
    if (std::getenv(name.c_str()) != nullptr) continue;
    finding.text = fmt::format("`pass_env` names {}, which is not set in this environment", name);
    return finding;
  }
  finding.grade = Finding::Grade::ok;
  finding.text = fmt::format("'{}' can be started", spec.command[0]);
  return finding;
}

}  // namespace holdfast
