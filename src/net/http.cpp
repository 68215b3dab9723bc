#include "net/http.hpp"

#include <curl/curl.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <ctime>
#include <optional>

namespace holdfast {
namespace {

/// Longest wait inside one poll. Stop requests wake it at once; this bounds a lost wake-up.
constexpr Duration kMaxPoll = std::chrono::milliseconds(1000);
constexpr std::size_t kMaxHeaderBytes = 64UL * 1024;

struct EasyCloser {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct MultiCloser {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct ListCloser {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct UrlCloser {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

/// A peer that goes away while a TLS record is written raises SIGPIPE, which libcurl leaves to its
/// caller. Blocked for this thread, and what came meanwhile is taken away.
class SigpipeBlock {
 public:
  SigpipeBlock() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    if (!was_pending_) pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeBlock() {
    if (was_pending_) return;
    const timespec now{0, 0};
    while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeBlock(const SigpipeBlock&) = delete;
  SigpipeBlock& operator=(const SigpipeBlock&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

/// What the C callbacks fill. They never throw and never call out.
struct Sink {
  HttpResponse response;
  std::string fresh;  ///< body bytes not yet handed on
  std::size_t seen_bytes = 0;
  std::size_t header_bytes = 0;
  std::size_t max_bytes = 0;
  bool too_large = false;
  bool has_bytes = false;  ///< anything at all came back
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.remove_suffix(1);
  }
  return text;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* target) {
  auto& sink = *static_cast<Sink*>(target);
  const std::string_view line(data, size * count);
  sink.has_bytes = true;
  sink.header_bytes += line.size();
  if (sink.header_bytes > kMaxHeaderBytes) {
    sink.too_large = true;
    return 0;
  }
  if (line.starts_with("HTTP/")) {
    // Interim answers (100, 103) have headers of their own.
    sink.response.headers.clear();
    return line.size();
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  std::string name(trim(line.substr(0, colon)));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  sink.response.headers[name] = std::string(trim(line.substr(colon + 1)));
  return line.size();
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* target) {
  auto& sink = *static_cast<Sink*>(target);
  const std::size_t bytes = size * count;
  sink.has_bytes = true;
  sink.seen_bytes += bytes;
  if (sink.seen_bytes > sink.max_bytes) {
    sink.too_large = true;
    sink.fresh.append(data, bytes - std::min(bytes, sink.seen_bytes - sink.max_bytes));
    return bytes == 0 ? 1 : 0;  // anything but `bytes` ends the transfer
  }
  sink.fresh.append(data, bytes);
  return bytes;
}

struct Breakage {
  const char* kind;
  TransportPhase phase;
};

/// May something of the request have been sent?
bool is_sending(TransportPhase phase) {
  return phase != TransportPhase::local && phase != TransportPhase::connect &&
         phase != TransportPhase::tls;
}

/// libcurl's codes in our words; phases where the code alone tells them.
Breakage breakage_of(CURLcode code, TransportPhase reached) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
      // Of the address, or of an answer that is not HTTP.
      if (is_sending(reached)) return {"broken_reply", TransportPhase::response};
      return {"bad_scheme", TransportPhase::local};
    case CURLE_URL_MALFORMAT:
      return {"bad_url", TransportPhase::local};
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {"proxy_dns", TransportPhase::connect};
    case CURLE_COULDNT_RESOLVE_HOST:
      return {"dns", TransportPhase::connect};
    case CURLE_COULDNT_CONNECT:
      return {"connection_refused", TransportPhase::connect};
    case CURLE_WEIRD_SERVER_REPLY:
      return {"broken_reply", TransportPhase::response};
    case CURLE_HTTP2:
      return {"http2_error", reached};
    case CURLE_HTTP2_STREAM:
      return {"http2_stream_error", reached};
    case CURLE_PARTIAL_FILE:
      return {"partial_body", TransportPhase::body};
    case CURLE_OPERATION_TIMEDOUT:
      return {reached == TransportPhase::connect || reached == TransportPhase::tls
                  ? "connect_timeout"
                  : "read_timeout",
              reached};
    case CURLE_SSL_CONNECT_ERROR:
      return {"tls_handshake", TransportPhase::tls};
    case CURLE_SSL_CERTPROBLEM:
      return {"tls_client_cert", TransportPhase::tls};
    case CURLE_SSL_CIPHER:
      return {"tls_cipher", TransportPhase::tls};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return {"tls_verify", TransportPhase::tls};
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
      return {"tls_ca_file", TransportPhase::tls};
    case CURLE_TOO_MANY_REDIRECTS:
      return {"redirect_loop", TransportPhase::response};
    case CURLE_GOT_NOTHING:
      return {"empty_reply", TransportPhase::first_byte};
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      return {"connection_reset", reached};
    case CURLE_BAD_CONTENT_ENCODING:
      return {"bad_encoding", TransportPhase::body};
    case CURLE_INTERFACE_FAILED:
      return {"interface_failed", TransportPhase::local};
    case CURLE_PROXY:
      return {"proxy_handshake", TransportPhase::connect};
    default:
      return {"unrecognised", TransportPhase::unknown};
  }
}

class Transfer {
 public:
  Transfer(const HttpRequest& request, Env& env, const std::stop_token& stop,
           const HttpObserver& observer)
      : request_(request), env_(env), stop_(stop), observer_(observer) {
    // Thread-safe in this libcurl; done once for the process.
    static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (ready == CURLE_OK) {
      easy_.reset(curl_easy_init());
      multi_.reset(curl_multi_init());
    }
    sink_.max_bytes = request.max_response_bytes;
  }

  HttpResponse run() {
    if (!easy_ || !multi_) {
      sink_.response.transport_kind = "no_http_client";
      sink_.response.phase = TransportPhase::local;
      return std::move(sink_.response);
    }
    const SigpipeBlock block;
    prepare();
    started_ = last_byte_ = env_.store_now();
    curl_multi_add_handle(multi_.get(), easy_.get());
    {
      // Wakes the poll from whichever thread asks to stop.
      std::stop_callback wake(stop_, [this] { curl_multi_wakeup(multi_.get()); });
      drive();
    }
    curl_multi_remove_handle(multi_.get(), easy_.get());
    return std::move(sink_.response);
  }

 private:
  template <class T>
  void set(CURLoption option, T value) {
    curl_easy_setopt(easy_.get(), option, value);
  }

  void prepare() {
    for (const auto& [name, value] : request_.headers) {
      add_header(std::string(name).append(": ").append(value));
    }
    add_header("Expect:");  // no waiting for "100 Continue"
    set(CURLOPT_URL, request_.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_FOLLOWLOCATION, 0L);  // a redirect must not carry the key elsewhere
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_QUICK_EXIT, 1L);  // a name lookup that hangs does not hold an interruption up
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_PATH_AS_IS, 1L);
    set_method();
    set(CURLOPT_HTTPHEADER, headers_.get());
    set(CURLOPT_CONNECTTIMEOUT_MS,
        static_cast<long>(std::max<Duration::rep>(1, request_.connect_timeout.count())));
    set(CURLOPT_ERRORBUFFER, error_.data());
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &sink_);
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &sink_);
  }

  void set_method() {
    const bool has_no_body = request_.body.empty() && request_.method != "POST" &&
                             request_.method != "PUT" && request_.method != "PATCH";
    if (request_.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (has_no_body) {
      set(CURLOPT_HTTPGET, 1L);
      set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    } else {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
      set(CURLOPT_POSTFIELDS, request_.body.data());
      set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    }
  }

  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) return;
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }

  /// Until the transfer is over, in whichever way.
  void drive() {
    for (;;) {
      int running = 0;
      if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) {
        return break_off("unrecognised", TransportPhase::unknown);
      }
      if (!hand_on()) return;
      if (running == 0) return finish();
      if (stop_.stop_requested()) return break_off("interrupted", phase_reached());
      const StoreTime now = env_.store_now();
      if (auto kind = overdue(now)) return break_off(*kind, phase_reached());
      const auto wait = std::clamp(next_deadline() - now, Duration(1), kMaxPoll);
      curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(wait.count()), nullptr);
    }
  }

  /// Takes over what the callbacks gathered. False: the observer has enough.
  bool hand_on() {
    if (sink_.has_bytes) {
      sink_.has_bytes = false;
      answered_ = true;
      last_byte_ = env_.store_now();
    }
    if (sink_.fresh.empty()) return true;
    read_status();
    const std::string piece = std::exchange(sink_.fresh, {});
    sink_.response.body += piece;
    return !observer_ || observer_(sink_.response, piece);
  }

  void read_status() {
    long status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    sink_.response.status = static_cast<int>(status);
  }

  TransportPhase phase_reached() {
    if (!sink_.response.body.empty()) {
      return observer_ ? TransportPhase::stream : TransportPhase::body;
    }
    if (answered_) return TransportPhase::body;
    curl_off_t connected = 0;
    curl_off_t ready = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_CONNECT_TIME_T, &connected);
    curl_easy_getinfo(easy_.get(), CURLINFO_PRETRANSFER_TIME_T, &ready);
    if (ready > 0) return TransportPhase::first_byte;
    return connected > 0 ? TransportPhase::tls : TransportPhase::connect;
  }

  std::optional<const char*> overdue(StoreTime now) const {
    if (request_.total_timeout > Duration::zero() && now - started_ >= request_.total_timeout) {
      return "total_timeout";
    }
    if (!answered_ && now - started_ >= request_.first_byte_timeout) return "read_timeout";
    if (answered_ && now - last_byte_ >= request_.idle_timeout) return "idle_timeout";
    return std::nullopt;
  }

  StoreTime next_deadline() const {
    StoreTime next =
        answered_ ? last_byte_ + request_.idle_timeout : started_ + request_.first_byte_timeout;
    if (request_.total_timeout > Duration::zero()) {
      next = std::min(next, started_ + request_.total_timeout);
    }
    return next;
  }

  void break_off(const char* kind, TransportPhase phase) {
    read_status();
    sink_.response.transport_kind = kind;
    sink_.response.phase = phase;
  }

  void finish() {
    read_status();
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    const CURLcode code = message != nullptr ? message->data.result : CURLE_OK;
    if (code == CURLE_OK) return;
    if (sink_.too_large) {
      // What came of an error page is enough to judge it.
      if (sink_.response.status >= 400) return;
      return break_off("response_too_large", TransportPhase::body);
    }
    long connect_status = 0;
    curl_easy_getinfo(easy_.get(), CURLINFO_HTTP_CONNECTCODE, &connect_status);
    if (connect_status >= 300) return break_off("proxy_refused", TransportPhase::connect);
    const TransportPhase reached = phase_reached();
    const Breakage what = breakage_of(code, reached);
    // What has begun to be sent may have arrived, whatever the library's code is about.
    break_off(what.kind, is_sending(reached) && !is_sending(what.phase) ? reached : what.phase);
    sink_.response.transport_text = error_[0] != '\0' ? error_.data() : curl_easy_strerror(code);
  }

  const HttpRequest& request_;
  Env& env_;
  const std::stop_token& stop_;
  const HttpObserver& observer_;
  Sink sink_;
  StoreTime started_{};
  StoreTime last_byte_{};
  bool answered_ = false;
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::unique_ptr<curl_slist, ListCloser> headers_;
  std::unique_ptr<CURLM, MultiCloser> multi_;
  std::unique_ptr<CURL, EasyCloser> easy_;
};

}  // namespace

HttpResponse http_call(const HttpRequest& request, Env& env, const std::stop_token& stop,
                       const HttpObserver& observer) {
  if (stop.stop_requested()) {
    HttpResponse response;
    response.transport_kind = "interrupted";
    response.phase = TransportPhase::local;
    return response;
  }
  return Transfer(request, env, stop, observer).run();
}

bool is_unsent(const HttpResponse& response) {
  return !response.transport_kind.empty() && !is_sending(response.phase);
}

std::string connection_problem(const std::string& url, Duration timeout) {
  const std::unique_ptr<CURL, EasyCloser> easy(curl_easy_init());
  if (!easy) return "no HTTP client";
  const SigpipeBlock block;
  std::array<char, CURL_ERROR_SIZE> error{};
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy.get(), CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, error.data());
  curl_easy_setopt(easy.get(), CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(std::max<Duration::rep>(1, timeout.count())));
  const CURLcode code = curl_easy_perform(easy.get());
  if (code == CURLE_OK) return {};
  return error[0] != '\0' ? error.data() : curl_easy_strerror(code);
}

std::string url_problem(const std::string& url) {
  const bool has_control = std::any_of(url.begin(), url.end(), [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F;
  });
  if (url.empty()) return "is empty; give it an address like https://api.example.com/v1";
  if (has_control) return "holds a blank or control character; remove it";
  const std::unique_ptr<CURLU, UrlCloser> parsed(curl_url());
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    return "is no address; use one like https://api.example.com/v1";
  }
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return "must start with http:// or https://";
  }
  char* user = nullptr;
  if (curl_url_get(parsed.get(), CURLUPART_USER, &user, 0) == CURLUE_OK) {
    curl_free(user);
    return "holds a user name or password; secrets come from the environment (api_key_env)";
  }
  return {};
}

}  // namespace holdfast
