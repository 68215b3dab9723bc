#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/context.hpp"

namespace holdfast {

/// Price of a model in US dollars per million tokens.
struct Price {
  double input = 0;
  double output = 0;
  std::optional<double> cached = {};       ///< of input read from a cache; none: as `input`
  std::optional<double> cache_write = {};  ///< of input written to a cache; none: as `input`
};

/// A model API (spec, section 11 `[providers.NAME]`).
struct ProviderSpec {
  std::string name;
  std::string kind = "openai";  ///< openai (any compatible server), anthropic, gemini, ollama,
                                ///< scripted
  std::string base_url;         ///< empty: that of the kind, where it has one
  std::string api = "chat";     ///< openai: chat, responses
  std::string api_key_env;      ///< name of the environment variable; empty: no key is sent
  bool stream = true;
  bool native_schema = true;  ///< is an agent's answer schema sent in the way of the kind?
  int max_tokens = 16384;     ///< anthropic: the longest answer of one call
  Duration timeout = std::chrono::seconds(120);  ///< of one model call
  Duration connect_timeout = std::chrono::seconds(10);
  Duration first_byte_timeout = std::chrono::minutes(5);
  Duration idle_timeout = std::chrono::seconds(120);
  std::map<std::string, std::string> headers;
  std::map<std::string, Price> prices;
  std::map<std::string, std::int64_t> context_window;  ///< by model, in tokens
  std::string script;                                  ///< scripted: path of the JSON file
};

/// What an HTTP tool sends (spec, section 5). Arguments that the template does not name become the
/// JSON body of POST, PUT and PATCH, and parameters of the query of the other methods.
struct HttpToolSpec {
  std::string method = "POST";
  std::string url;  ///< `{name}` in its path and query stands for an argument
  std::map<std::string, std::string> headers;
  std::map<std::string, std::string> header_env;  ///< header → environment variable with its value
  std::string bearer_env;  ///< variable with the token of `Authorization: Bearer`; empty: none
  Duration connect_timeout = std::chrono::seconds(10);
};

/// A tool of an agent (spec, section 11 `[tools.NAME]`): a command, an HTTP call, or a function of
/// this program.
struct ToolSpec {
  std::string name;
  std::string description;
  Effect effect = Effect::non_idempotent_write;
  Json parameters = Json::object({{"type", "object"}});  ///< JSON Schema 2020-12 of the arguments
  Duration timeout = std::chrono::minutes(5);

  std::vector<std::string> command;        ///< program and arguments; JSON on standard input
  std::vector<std::string> probe_command;  ///< spec, section 5 "Probe"; empty: none
  std::map<std::string, std::string> env;
  std::vector<std::string> pass_env;
  std::string working_folder;  ///< relative commands start here; the configuration file's folder

  std::optional<HttpToolSpec> http;  ///< in place of `command`

  /// In place of `command`: a C++ tool. Called from many threads at once, also for one run where it
  /// only reads; a thrown FailureError ends the segment, a returned value is the result for the
  /// model.
  std::function<Json(const Json& arguments, const StepContext&)> function;
  std::function<ProbeAnswer(const Json& arguments, const StepContext&)> probe;

  bool approval = false;
  std::optional<Duration> approval_timeout;
  bool end_on_denial = false;
  Json input_schema;  ///< what a person must fill in before the tool runs; null: nothing

  bool has_probe() const { return !probe_command.empty() || static_cast<bool>(probe); }
};

/// What becomes of a run whose budget is used up: it completes with what it has, or asks a person.
enum class OnBudget { stop, ask };

/// An LLM tool loop (spec, section 11 `[agents.NAME]`).
struct AgentSpec {
  std::string name;
  std::vector<std::string> models;  ///< `provider/model`; the rest is the fallback chain
  std::string system;
  std::vector<std::string> tools;
  Json answer_schema;  ///< JSON Schema 2020-12 of the answer; null: the answer is a text
  int max_iterations = 20;
  int max_repeats = 5;  ///< turns in a row with the same calls and results that end it; 0: none do
  Budget budget;
  OnBudget on_budget = OnBudget::stop;
  int parallel_reads = 4;  ///< calls of one turn that only read and run at the same time
  std::string queue = "default";
  std::vector<FailureClass> fallback_on;
  std::optional<Duration> approval_timeout;
  std::optional<Policy> policy;  ///< none: the runtime's
};

}  // namespace holdfast
