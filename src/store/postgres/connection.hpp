#pragma once

// A thin wrapper of libpq: one session, statements sent together (pipeline mode), errors as
// StoreError.

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "holdfast/failure.hpp"
#include "store/postgres/url.hpp"
#include "store/postgres/values.hpp"

namespace holdfast::postgres {

/// What the server, or the way to it, said.
class PgError : public StoreError {
 public:
  PgError(std::string state, const std::string& message, bool permanent)
      : StoreError(message, permanent), state_(std::move(state)) {}
  /// Five characters; empty where the connection was lost.
  const std::string& state() const { return state_; }
  bool is_lost() const { return state_.empty(); }
  /// The role lacks a right.
  bool is_refusal() const { return state_ == "42501"; }
  /// The session, or its server, takes no writes.
  bool is_read_only() const { return state_ == "25006"; }
  /// The whole transaction may be tried again at once: it met another one.
  bool is_collision() const {
    return state_ == "40001" || state_ == "40P01" || state_ == "23505" || state_ == "CR000";
  }

 private:
  std::string state_;
};

/// One session. One thread at a time. Once broken it stays so: make another.
class Connection {
 public:
  /// Throws PgError, permanent where no waiting helps.
  explicit Connection(const Target&);
  /// With the time limits and plans of the store's own statements.
  static std::unique_ptr<Connection> make_tuned(const Target&);
  Connection(const Connection&) = delete;
  ~Connection();

  /// Puts a constant statement and its values on the way; `@.` in it stands for the schema.
  void send(const char* sql, const Params& = Params());
  /// The same for text that is made at run time.
  void send_text(const std::string& sql, const Params& = Params());
  /// The answers to everything that was sent, in order. Throws PgError of the first that failed;
  /// those behind it were not executed. Sent outside a transaction they are one. A long wait is
  /// told, with `what` as its likely reason.
  std::vector<Result> flush(Duration patience = kPatience, std::string_view what = {});

  Result ask(const char* sql, const Params& params = Params()) {
    send(sql, params);
    return std::move(flush().front());
  }
  /// Several statements without values, one after the other.
  void execute(const std::string& sql, Duration patience = kPatience, std::string_view what = {});

  /// Ends a transaction that may have been ended already. Never throws.
  void roll_back() noexcept;
  bool is_in_transaction() const { return PQtransactionStatus(conn_) != PQTRANS_IDLE; }
  bool is_broken() const { return is_broken_; }
  /// Neither lost, nor with a server that takes no writes any more.
  bool is_usable();
  /// The same, of a session that may be half-open: the server is asked.
  bool answers() noexcept;

  /// Waits until the server says something unasked, or loses us. False: `timeout` passed.
  bool wait_readable(Duration timeout, int other_fd = -1);
  struct Notification {
    std::string payload;
    int session = 0;  ///< the process of the server that sent it
  };
  /// Those that have come. Throws PgError when the connection is lost.
  std::vector<Notification> take_notifications();
  /// Of the session's process, as the server (or who stands before it) told at the beginning.
  int process_number() const { return PQbackendPID(conn_); }
  /// A warning came with the last flush.
  const std::string& warning() const { return warning_; }

  /// Of the database, as the server names it.
  std::string_view encoding() const;

  std::string in_schema(std::string_view sql) const;
  const Target& target() const { return target_; }

  /// How long one answer may take, before the session is given up: well under a lease.
  static constexpr Duration kPatience = std::chrono::seconds(12);

 private:
  struct Statement {
    std::string name;
    std::string text;
    bool is_prepared = false;
  };
  struct Expected {
    Statement* prepares = nullptr;
  };

  void enter_pipeline();
  [[noreturn]] void lose(const std::string& why);
  [[noreturn]] void fail(const PGresult*);
  void check_sent(int code);
  struct Wait {
    Duration left;
    std::string_view what;
    Duration silent{0};
    bool is_told = false;
  };
  void wait_for_server(Wait&, bool must_write);

  const Target target_;
  PGconn* conn_ = nullptr;
  bool is_broken_ = false;
  std::deque<Expected> expected_;
  std::unordered_map<const char*, Statement> statements_;  ///< by the address of the constant
  std::string warning_;
};

}  // namespace holdfast::postgres
