#pragma once

// One HTTP request and its answer over libcurl: bounded in time and size, interruptible, no
// redirects, no retries, certificates always checked.

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/classify.hpp"
#include "env/env.hpp"

namespace holdfast {

struct HttpRequest {
  std::string method = "POST";
  std::string url;  ///< sent as it stands: no segment of its path is resolved
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Duration connect_timeout = std::chrono::seconds(10);
  Duration first_byte_timeout = std::chrono::minutes(5);  ///< from the start to the first byte
  Duration idle_timeout = std::chrono::seconds(120);      ///< between bytes
  Duration total_timeout = std::chrono::minutes(10);      ///< of everything; zero or less: none
  std::size_t max_response_bytes = std::size_t{16} << 20;
};

/// What came back, and what broke. A transfer that ended well has an empty `transport_kind`.
struct HttpResponse {
  int status = 0;                              ///< 0: no status line came
  std::map<std::string, std::string> headers;  ///< names in lower case; the last one counts
  std::string body;
  std::string transport_kind;  ///< words as in core/classify.hpp; `interrupted` when asked to stop
  TransportPhase phase = TransportPhase::none;
  std::string transport_text;  ///< libcurl's own words
};

/// Sees each piece of a body as it comes, after the headers are complete. False: enough has been
/// read, the transfer ends as if it were over. May throw; the transfer is then dropped.
using HttpObserver = std::function<bool(const HttpResponse& head, std::string_view piece)>;

/// Sends the request and reads the answer. Returns soon after `stop` is requested. Any thread.
HttpResponse http_call(const HttpRequest&, Env&, const std::stop_token& stop,
                       const HttpObserver& observer = {});

/// Was nothing of the request sent? Then what it asks for cannot have happened.
bool is_unsent(const HttpResponse&);

/// Why no connection to the address's host stands within the time; empty: one did. Nothing is sent
/// over it but, for https, the handshake.
std::string connection_problem(const std::string& url, Duration timeout);

/// Is this an address that requests can be sent to (http or https, with a host)? Empty: yes.
std::string url_problem(const std::string& url);

}  // namespace holdfast
