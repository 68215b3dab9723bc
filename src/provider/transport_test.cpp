// What goes wrong below HTTP, through libcurl and real sockets: each has its class and its word,
// and is asked once.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "provider/providers.hpp"
#include "support/stub_server.hpp"
#include "support/tls_server.hpp"

namespace holdfast {
namespace {

using testing::StubAnswer;
using testing::StubServer;
using testing::TlsServer;
using enum FailureClass;

Failure failure_at(const std::string& url, Duration connect_timeout = std::chrono::seconds(10)) {
  ProviderSpec spec;
  spec.name = "main";
  spec.base_url = url;
  spec.connect_timeout = connect_timeout;
  ModelRequest request;
  Message message;
  message.text = "hello";
  request.messages = {message};
  try {
    make_openai(spec, real_env(), {})->complete("gpt", request, {});
    ADD_FAILURE() << url << " answered";
  } catch (const FailureError& error) {
    return error.failure();
  }
  return {};
}

/// A listening socket of which nobody accepts anything.
class Listener {
 public:
  explicit Listener(int backlog) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_, generic, size), 0);
    EXPECT_EQ(::listen(fd_, backlog), 0);
    EXPECT_EQ(::getsockname(fd_, generic, &size), 0);
    address_ = address;
  }
  ~Listener() {
    for (const int client : clients_) ::close(client);
    ::close(fd_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// From now on whoever connects gets no answer at all.
  void fill() {
    for (int i = 0; i < 8; ++i) {
      clients_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      ::connect(clients_.back(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_));
    }
  }
  /// Takes one connection and resets it once the client has spoken.
  void reset_one() const {
    const int connection = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    char byte = 0;
    static_cast<void>(::recv(connection, &byte, 1, 0));
    const linger now{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    ::close(connection);
  }
  std::string url(const char* scheme) const {
    return std::string(scheme) + "://127.0.0.1:" + std::to_string(ntohs(address_.sin_port)) + "/v1";
  }

 private:
  int fd_;
  sockaddr_in address_{};
  std::vector<int> clients_;
};

TEST(Transport, AHostThatIsNotKnownIsAFailureOfTheConnection) {
  // No name server is asked for a name of this length.
  const Failure failure = failure_at("http://" + std::string(64, 'a') + ".invalid/v1");
  EXPECT_EQ(failure.cls, connection) << failure.message;
  EXPECT_EQ(failure.code, "dns");
}

TEST(Transport, ACertificateThatNobodyVouchesForIsOneOfTheConfiguration) {
  for (const testing::TlsCertificate& certificate :
       {testing::TlsCertificate{}, testing::TlsCertificate{"127.0.0.1", true},
        testing::TlsCertificate{"models.example", false}}) {
    TlsServer server(certificate);
    const Failure failure = failure_at(server.url());
    EXPECT_EQ(failure.cls, configuration) << failure.message;
    EXPECT_EQ(failure.code, "tls_verify");
    EXPECT_NE(failure.message.find("certificate"), std::string::npos) << failure.message;
    EXPECT_EQ(server.connections(), 1);
    EXPECT_EQ(server.requests(), 0) << "the request, and the key with it, must stay here";
  }
}

TEST(Transport, AHandshakeThatIsCutIsAFailureOfTheConnection) {
  Listener listener(4);
  std::jthread server([&] { listener.reset_one(); });
  const Failure failure = failure_at(listener.url("https"));
  EXPECT_EQ(failure.cls, connection) << failure.message;
  EXPECT_EQ(failure.code, "tls_handshake");
}

TEST(Transport, AResetBeforeTheAnswerIsAFailureOfTheConnection) {
  Listener listener(4);
  std::jthread server([&] { listener.reset_one(); });
  const Failure failure = failure_at(listener.url("http"));
  EXPECT_EQ(failure.cls, connection) << failure.message;
  EXPECT_EQ(failure.code, "connection_reset");
}

TEST(Transport, AConnectionThatIsNeverMadeTimesOut) {
  Listener listener(0);
  listener.fill();
  const Failure failure = failure_at(listener.url("http"), std::chrono::milliseconds(300));
  EXPECT_EQ(failure.cls, timeout) << failure.message;
  EXPECT_EQ(failure.code, "connect_timeout");
}

TEST(Transport, AServerThatHangsUpIsAFailureOfTheConnection) {
  StubServer server;
  StubAnswer answer;
  answer.end = StubAnswer::End::mute;
  server.play(answer);
  const Failure failure = failure_at(server.url());
  EXPECT_EQ(failure.cls, connection) << failure.message;
  EXPECT_EQ(failure.code, "empty_reply");
  EXPECT_EQ(server.requests().size(), 1u);
}

}  // namespace
}  // namespace holdfast
