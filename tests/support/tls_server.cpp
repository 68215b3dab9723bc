#include "support/tls_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <stdexcept>

namespace holdfast::testing {
namespace {

struct Release {
  void operator()(SSL* it) const { SSL_free(it); }
  void operator()(EVP_PKEY* it) const { EVP_PKEY_free(it); }
  void operator()(X509* it) const { X509_free(it); }
  void operator()(X509_EXTENSION* it) const { X509_EXTENSION_free(it); }
};
template <class T>
using Owned = std::unique_ptr<T, Release>;

void need(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string("the TLS server: ") + what);
}

Owned<X509> make_certificate(const TlsCertificate& wanted, EVP_PKEY* key) {
  constexpr long kDay = 24 * 60 * 60;
  Owned<X509> made(X509_new());
  X509* cert = made.get();
  X509_set_version(cert, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert), -30 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(cert), wanted.is_expired ? -kDay : kDay);
  X509_set_pubkey(cert, key);
  X509_NAME* name = X509_get_subject_name(cert);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(wanted.host.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(cert, name);
  in_addr address{};
  const bool is_address = inet_pton(AF_INET, wanted.host.c_str(), &address) == 1;
  const std::string names = (is_address ? "IP:" : "DNS:") + wanted.host;
  const Owned<X509_EXTENSION> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str()));
  need(extension && X509_add_ext(cert, extension.get(), -1) == 1, "no names");
  need(X509_sign(cert, key, EVP_sha256()) != 0, "no signature");
  return made;
}

}  // namespace

struct TlsServer::Context {
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> ssl{nullptr, SSL_CTX_free};
};

TlsServer::TlsServer(const TlsCertificate& wanted) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  need(key != nullptr, "no key");
  const auto certificate = make_certificate(wanted, key.get());
  context_ = std::make_unique<Context>();
  context_->ssl.reset(SSL_CTX_new(TLS_server_method()));
  need(SSL_CTX_use_certificate(context_->ssl.get(), certificate.get()) == 1 &&
           SSL_CTX_use_PrivateKey(context_->ssl.get(), key.get()) == 1,
       "no certificate");
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  need(listener_ >= 0 && ::bind(listener_, generic, size) == 0 && ::listen(listener_, 16) == 0 &&
           ::getsockname(listener_, generic, &size) == 0 && ::pipe(wake_) == 0,
       "cannot listen on the loopback");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

TlsServer::~TlsServer() {
  thread_.request_stop();
  static_cast<void>(!::write(wake_[1], "x", 1));
  thread_.join();
  ::close(listener_);
  ::close(wake_[0]);
  ::close(wake_[1]);
}

std::string TlsServer::url() const { return "https://127.0.0.1:" + std::to_string(port_) + "/v1"; }

void TlsServer::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd ready[2] = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0 || stop.stop_requested()) continue;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    ++connections_;
    answer(connection);
    ::close(connection);
  }
}

void TlsServer::answer(int connection) {
  // A client that neither goes on nor away must not keep the test from its end.
  const timeval patience{10, 0};
  ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const Owned<SSL> ssl(SSL_new(context_->ssl.get()));
  SSL_set_fd(ssl.get(), connection);
  char byte = 0;
  if (SSL_accept(ssl.get()) == 1 && SSL_read(ssl.get(), &byte, 1) == 1) ++requests_;
}

}  // namespace holdfast::testing
