// The sections about tools: `[http]` and `[tools.NAME]`.

#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "app/config_parts.hpp"
#include "app/config_sections.hpp"
#include "base/text.hpp"
#include "tool/url_template.hpp"

namespace holdfast {
namespace {

constexpr std::array kHttpKeys = {"method",     "url",        "headers",
                                  "header_env", "bearer_env", "connect_timeout"};
std::string folder_of_file(const std::string& folder) {
  std::string whole =
      std::filesystem::absolute(folder.empty() ? "." : folder).lexically_normal().string();
  if (whole.size() > 1 && whole.ends_with('/')) whole.pop_back();
  return whole;
}

void refuse_http_keys(TableReader& table) {
  for (const char* key : kHttpKeys) {
    if (!table.has(key)) continue;
    table.refuse(key, "only a tool of kind \"http\" has it");
    table.skip(key);
  }
}

void check_listed(const TableReader& table, const std::string& url, const RuntimeOptions& options) {
  if (is_host_listed(url, options.http_hosts)) return;
  table.refuse("url", fmt::format("[http] hosts does not list {}", origin_of(url)));
}

void read_http(TableReader& table, ToolSpec& spec, const RuntimeOptions& options,
               ConfigProblems& problems) {
  HttpToolSpec http;
  table.read("method", http.method);
  check_word(table, "method", http.method, {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, {});
  table.read("url", http.url);
  if (const auto problem = url_template_problem(http.url, spec.parameters); !problem.empty()) {
    table.refuse("url", problem);
  } else {
    check_listed(table, http.url, options);
  }
  read_headers(table, http.headers, "use bearer_env or header_env", problems);
  read_secret_headers(table, http.header_env, http.bearer_env, problems);
  table.read("connect_timeout", http.connect_timeout, kShortest);
  spec.http = std::move(http);
}

void read_tool(TableReader& table, const std::string& folder, ToolSpec& spec,
               const RuntimeOptions& options, ConfigProblems& problems) {
  if (!is_name_of(spec.name, "_-")) {
    problems.add(table.line(), "tools." + spec.name,
                 "a tool's name has at most 64 letters, digits, '_' and '-': models accept no "
                 "other");
  }
  std::string kind = "command";
  table.read("kind", kind);
  check_word(table, "kind", kind, {"command", "http"}, {"mcp"});
  const bool is_http = kind == "http";
  read_command(table, "command", spec.command);
  if (kind == "command" && !table.has("command")) {
    table.refuse("command", "missing; expected a list such as [\"./tool.sh\"]");
  }
  if (is_http && table.has("command")) {
    table.refuse("command", "a tool of kind \"http\" has no command");
    spec.command.clear();
  }
  read_command(table, "probe", spec.probe_command);
  table.read("description", spec.description);
  read_word(table, "effect", spec.effect,
            {Effect::read, Effect::idempotent_write, Effect::non_idempotent_write});
  table.read("timeout", spec.timeout, kShortest);
  table.read_json("parameters", spec.parameters);
  check_object_schema(table, "parameters", spec.parameters);
  read_environment(table, spec.env, spec.pass_env, problems);
  if (is_http) {
    read_http(table, spec, options, problems);
  } else {
    refuse_http_keys(table);
  }
  table.read("approval", spec.approval);
  table.read("approval_timeout", spec.approval_timeout, kShortest);
  std::string on_denial = "continue";
  table.read("on_denial", on_denial);
  check_word(table, "on_denial", on_denial, {"continue", "end"}, {});
  spec.end_on_denial = on_denial == "end";
  table.read_json("input", spec.input_schema);
  check_object_schema(table, "input", spec.input_schema);
  spec.working_folder = folder_of_file(folder);
  table.finish(is_http ? "use bearer_env or header_env"
                       : "use pass_env = [\"NAME_OF_A_VARIABLE\"]");
}

}  // namespace

void read_http_hosts(TableReader& file, RuntimeOptions& options, ConfigProblems& problems) {
  auto table = file.find_table("http");
  if (!table) return;
  std::vector<TextAt> hosts;
  table->read("hosts", hosts);
  for (const TextAt& host : hosts) {
    if (const auto problem = host_entry_problem(host.text); !problem.empty()) {
      problems.add(host.line, table->full_name("hosts"), problem);
    } else {
      options.http_hosts.push_back(host.text);
    }
  }
  table->finish();
}

void read_tools(TableReader& file, const std::string& folder, RuntimeOptions& options,
                ConfigProblems& problems) {
  for (auto& [name, table] : file.named_tables("tools")) {
    ToolSpec spec;
    spec.name = name;
    read_tool(table, folder, spec, options, problems);
    options.tools.push_back(std::move(spec));
  }
}

}  // namespace holdfast
