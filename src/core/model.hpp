#pragma once

// What an agent needs of a model and of tools, without knowing any vendor. Implemented in provider/
// and tool/.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "holdfast/agent.hpp"
#include "holdfast/context.hpp"

namespace holdfast {

/// A call that the model made. `id` is ours, run-wide; `arguments` is what the model wrote where it
/// parsed.
struct ToolCall {
  std::string id;
  std::string name;
  Json arguments;
  std::optional<std::string> bad_arguments;  ///< the text as it came, where it is not JSON
};

/// One turn of the neutral history.
struct Message {
  enum class Role { system, user, assistant, tool } role = Role::user;
  std::string text;
  std::vector<ToolCall> calls;  ///< assistant
  std::string call_id;          ///< tool: the call it answers
  std::string tool_name;        ///< tool
  bool is_error = false;        ///< tool
  Json opaque;                  ///< assistant: parts to be kept byte for byte for their own maker
  std::string made_by;          ///< assistant: `provider/model`
};

struct ToolDefinition {
  std::string name;
  std::string description;
  Json parameters;
};

struct ModelRequest {
  RunId run;
  std::vector<Message> messages;
  std::vector<ToolDefinition> tools;
  Json answer_schema;  ///< null: the answer is a text
  int left_out = 0;    ///< turns of the conversation that are not among `messages` any more
  int leaves_out = 0;  ///< of those that are, so many of the oldest are not to be sent
};

/// What one model call used: the counts of the run, and what they consist of. Cached and written
/// tokens are part of the prompt's, reasoning is part of the completion's, whoever counts them.
struct ModelUsage : Usage {
  std::int64_t cached_tokens = 0;       ///< read from the other side's cache
  std::int64_t cache_write_tokens = 0;  ///< written to it
  std::int64_t reasoning_tokens = 0;
  bool estimated = false;  ///< the other side did not say; counted from the texts

  ModelUsage& operator+=(const ModelUsage&);
  friend bool operator==(const ModelUsage&, const ModelUsage&) = default;
};

struct ModelReply {
  std::string provider;
  std::string model;
  std::string text;
  std::vector<ToolCall> calls;
  ModelUsage usage;
  std::string finish;        ///< `stop`, `length`, `tool_calls`, `pause`, or the maker's own word
  Json opaque;               ///< see provider/own_parts.hpp
  int left_out = 0;          ///< turns that were not sent, so that the request fitted
  bool was_refused = false;  ///< the model refused it with fewer left out
};

/// A request that does not fit, also without all the turns that can be left out (`context_length`).
class TruncatedFailure final : public FailureError {
 public:
  using FailureError::FailureError;
};

struct CallContext {
  std::stop_token stop;
  Duration timeout{};
  std::function<void(std::string_view)> on_text;  ///< deltas for live observers; may be empty
};

/// One model API. Called from many threads at once.
class Provider {
 public:
  virtual ~Provider() = default;
  /// One request, one answer, no hidden retries. Throws FailureError.
  virtual ModelReply complete(const std::string& model, const ModelRequest&,
                              const CallContext&) = 0;
  /// About how many tokens a request to that model may take; none: nobody knows.
  virtual std::optional<std::int64_t> request_room(const std::string&) const {
    return std::nullopt;
  }
  /// Before the first call: reads what it answers from. Throws RefusedError where that cannot be.
  virtual void prepare() {}
  /// What this process lacks to call it, whatever is asked (its key); empty: nothing.
  virtual std::string lack() const { return {}; }
};

/// The models of an agent in order: the first that answers. Throws FailureError classified by the
/// most recent attempt. A request that a model has no room for, by what is known of it or by its
/// own word, is sent without its oldest turns; none is sent twice.
class ModelChain {
 public:
  virtual ~ModelChain() = default;
  virtual ModelReply complete(const std::vector<std::string>& models,
                              const std::vector<FailureClass>& fallback_on, const ModelRequest&,
                              const CallContext&) = 0;
  /// Every provider is prepared. Who only looks at runs needs no provider's files.
  virtual void prepare() {}
  /// Why this process can call none of these models, whatever is asked; empty: it can.
  virtual std::string lack(const std::vector<std::string>&) const { return {}; }
};

/// What a tool gave back for the model.
struct ToolOutcome {
  Json result;
  bool is_error = false;
};

/// The tools of this process by name. Called from many threads at once.
class Toolbox {
 public:
  virtual ~Toolbox() = default;
  virtual const ToolSpec* find(const std::string& name) const = 0;
  /// Throws FailureError: not_started, outcome_unknown, or a failure of the segment (spec, section
  /// 5).
  virtual ToolOutcome call(const ToolSpec&, const Json& arguments, const StepContext&) = 0;
  virtual ProbeAnswer probe(const ToolSpec&, const Json& arguments, const StepContext&) = 0;
};

}  // namespace holdfast
