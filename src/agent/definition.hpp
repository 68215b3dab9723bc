#pragma once

// What a run carries of its agent: copied into the run at its first claim and used by all its
// segments, whatever the configuration says by then (spec, section 3 "Policy").

#include <optional>
#include <string>
#include <vector>

#include "core/model.hpp"

namespace holdfast {

/// A tool as a run knows it. A command or an HTTP call is executed from here; a function, and the
/// values of `env`, come from the Toolbox by name.
struct ToolTerms {
  std::string name;
  std::string description;
  Json parameters;
  Effect effect = Effect::non_idempotent_write;
  Duration timeout = std::chrono::minutes(5);
  bool approval = false;
  std::optional<Duration> approval_timeout;
  bool end_on_denial = false;
  Json input_schema;
  bool has_probe = false;
  bool is_command = false;
  std::optional<HttpToolSpec> http;
  std::vector<std::string> command;
  std::vector<std::string> probe_command;
  std::vector<std::string> pass_env;
  std::string folder;      ///< where command and probe are started
  std::string env_digest;  ///< of the `env` table
  std::string digest;      ///< of all that is executed for a call, and of its effect

  bool wants_input() const { return !input_schema.is_null(); }
};

/// An agent as a run knows it.
struct AgentTerms {
  std::string system;
  std::vector<std::string> models;
  std::vector<FailureClass> fallback_on;
  Json answer_schema;  ///< null: the answer is a text
  int max_iterations = 20;
  int max_repeats = 0;
  Budget budget;
  OnBudget on_budget = OnBudget::stop;
  std::vector<std::string> unpriced;  ///< models without a price
  int parallel_reads = 4;
  std::optional<Duration> approval_timeout;
  std::vector<ToolTerms> tools;

  const ToolTerms* find(const std::string& name) const;
  std::vector<ToolDefinition> tool_definitions() const;
  /// How long a person has for this tool's question; empty: for ever.
  std::optional<Duration> wait_for(const ToolTerms&) const;
};

/// Reads what `agent_definition` wrote. Throws FailureError (configuration) when it is something
/// else.
AgentTerms parse_definition(const Json&);

/// Ends a call, before it starts, that this configuration does not allow.
[[noreturn]] void fail_configuration(std::string code, std::string message);

/// Why this process cannot execute the tool; empty: it can.
std::string tool_problem(const ToolTerms&, const Toolbox&);

/// What is executed for a call: the run's terms, with what only this process has. Throws
/// FailureError (configuration, not started) where the process cannot execute the tool, or has
/// another `env` for it.
ToolSpec executable(const ToolTerms&, const Toolbox&);

}  // namespace holdfast
