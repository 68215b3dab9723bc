#pragma once

// The parts of the configuration file that describe models, tools and agents.

#include <string>

#include "app/toml_reader.hpp"
#include "holdfast/runtime.hpp"

namespace holdfast {

/// `path` as it is, or starting at `folder` where it is relative.
std::string resolve_path(const std::string& folder, const std::string& path);

void read_retry(TableReader, Policy&);
/// The keys of `[lease]` that belong to a run; `heartbeat` and `presence_interval` are the
/// process's.
void read_lease(TableReader&, Policy&);

void read_providers(TableReader& file, const std::string& folder, RuntimeOptions&, ConfigProblems&);
void read_http_hosts(TableReader& file, RuntimeOptions&, ConfigProblems&);
/// Behind the hosts.
void read_tools(TableReader& file, const std::string& folder, RuntimeOptions&, ConfigProblems&);
/// After providers and tools: names that lead nowhere are problems.
void read_agents(TableReader& file, RuntimeOptions&, ConfigProblems&);

}  // namespace holdfast
