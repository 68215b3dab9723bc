#pragma once

// What model APIs differ in: how a conversation is written, how an answer is read. The transport,
// the judging of failures and the bounds are the same for all (http_provider.cpp).

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/model.hpp"
#include "provider/answer.hpp"
#include "provider/own_parts.hpp"

namespace holdfast {

/// One answer that comes in pieces. One call, one thread. Partial texts and calls leave it only
/// through `finish`.
class AnswerStream {
 public:
  virtual ~AnswerStream() = default;

  /// Takes one event that is no error. Returns the text that it added; Malformed ends the answer.
  virtual std::variant<std::string, Malformed> add(const Json& event) = 0;

  /// The signal that the answer is whole has come; nothing else makes it one.
  virtual bool has_end() const = 0;

  /// Nothing more belongs to the answer.
  virtual bool is_over() const = 0;

  /// The whole answer, once it has its end.
  virtual std::variant<RawReply, Malformed> finish() const = 0;

  /// What the pieces said of tokens so far; zero where they said nothing.
  virtual ModelUsage usage() const = 0;

  /// What the pieces said about a missing end, for `classify`; null: nothing.
  virtual Json why_no_end() const { return nullptr; }
};

/// How one vendor's API is spoken. Immutable: any thread.
class Dialect {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  virtual ~Dialect() = default;

  virtual std::string url(const std::string& model, bool stream) const = 0;

  /// Headers of the API; those that carry the key where there is one. A header that the
  /// configuration names replaces one of these.
  virtual Headers headers(const std::string& key) const = 0;

  /// The request body. Equal history gives equal bytes.
  virtual std::string render(const Target&, const ModelRequest&, bool stream) const = 0;

  /// Reads a whole answer that is no error.
  virtual std::variant<RawReply, Malformed> read(const Json& answer) const = 0;

  virtual std::unique_ptr<AnswerStream> start_stream() const = 0;

  /// The part of an answer, or of an event, that says that the call failed; null: it does not.
  virtual Json error_in(const Json&) const = 0;

  /// Does a stream come as lines of JSON, and not as server-sent events?
  virtual bool streams_lines() const { return false; }
};

/// `base` without slashes at its end, with `prefix` behind it unless it is there already: an
/// address may be given with and without the version of the API.
std::string base_with(std::string base, const std::string& prefix);

/// An `error` member that is not null, as most APIs write it; also inside a list of one.
Json plain_error(const Json&);

}  // namespace holdfast
