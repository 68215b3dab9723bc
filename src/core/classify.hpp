#pragma once

// From evidence to a failure class: one set of rules for all providers (spec, section 6; facts and
// precedence: the server's explicit word, code, type, structured details, headers, text, status,
// transport phase). Pure.

#include <map>
#include <optional>
#include <string>

#include "holdfast/failure.hpp"

namespace holdfast {

/// Where a transfer broke off.
enum class TransportPhase {
  none,
  local,
  connect,
  tls,
  request,
  first_byte,
  body,
  stream,
  response,
  unknown
};

/// Everything that is known about a failed call.
struct Evidence {
  std::optional<int> status;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  std::string transport_kind;  ///< `connection_reset`, `tls_verify`, …; empty: none
  TransportPhase phase = TransportPhase::none;
  bool body_was_success = false;  ///< a 2xx whose body was no usable answer
  bool said_error = false;        ///< an error of the other side's own, with whatever status
  std::string provider;
  std::string model;
  std::size_t excerpt_bytes = 300;  ///< how much of a body may stand in the message
};

/// Class, code, message, hint and explicit word. Never throws, whatever the body holds.
Failure classify(const Evidence&);

/// The hint alone: `retry-after-ms`, `retry-after` as a number or a date against `date`, body
/// fields, reset headers of an empty bucket. Empty for zero, negative, past, malformed and
/// non-finite values.
std::optional<Duration> delay_hint(const Evidence&, std::string* source);

/// How a chain goes on after this class (spec, section 6): retryable classes and quota.
bool falls_back(FailureClass);

}  // namespace holdfast
