#include "store/postgres/connection.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "store/postgres/pg_statements.hpp"

namespace holdfast::postgres {
namespace {

using Steady = std::chrono::steady_clock;

/// A wait that lasts so long is told.
constexpr Duration kToldAfter = std::chrono::seconds(5);

std::string one_line(const char* text) {
  std::string line = clean_utf8(text == nullptr ? "" : text);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

struct Remedy {
  std::string_view text;
  bool is_permanent = false;
};

/// By the class or the whole of a SQLSTATE.
Remedy remedy_of(const std::string& state) {
  if (state == "42501") {
    return {"refused it: grant its role what docs/operations.md lists", true};
  }
  if (state == "3D000") return {"has no such database: create it first", true};
  if (state.starts_with("28"))
    return {"lets this role not in: check user, password and pg_hba", true};
  if (state == "42P01" || state == "3F000" || state == "42703") {
    return {"lacks a part of its schema: run `holdfast migrate`", true};
  }
  if (state == "25006")
    return {"takes no writes at the moment: a failover may be under way", false};
  if (state == "55P03" || state == "57014") {
    return {"answered too late: another session holds a lock, or the server is overloaded", false};
  }
  if (state == "42P05" || state == "26000") {
    return {
        "answers like a pooler that lends sessions for single transactions: add "
        "pooler=transaction to the store's URL",
        false};
  }
  if (state.starts_with("53")) {
    return {"is out of resources: connections, memory or disk space", false};
  }
  if (state.starts_with("57P")) return {"is shutting down or starting up", false};
  if (state.starts_with("XX")) return {"is damaged or met a fault of its own: see its log", false};
  return {"failed", false};
}

}  // namespace

Connection::Connection(const Target& target) : target_(target) {
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : target_.settings) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  conn_ = PQconnectdbParams(keys.data(), values.data(), 0);
  if (PQstatus(conn_) != CONNECTION_OK) {
    const std::string detail = one_line(PQerrorMessage(conn_));
    PQfinish(conn_);
    const auto says = [&](std::string_view part) { return detail.find(part) != std::string::npos; };
    const bool is_permanent = (says("database \"") && says("does not exist")) ||
                              says("password authentication failed") ||
                              says("no password supplied") || says("no pg_hba.conf entry") ||
                              (says("role \"") && says("does not exist"));
    const bool only_reads = says("session is read-only") || says("is in hot standby mode");
    throw PgError("",
                  fmt::format("the store {} cannot be reached; check that {} ({})", target_.shown,
                              only_reads ? "a server that takes writes is among its hosts, and "
                                           "default_transaction_read_only is off"
                                         : "the server runs and that address, user and password "
                                           "are right",
                              detail),
                  is_permanent);
  }
  PQsetNoticeReceiver(
      conn_,
      [](void* self, const PGresult* notice) {
        const char* severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
        if (severity == nullptr || std::string_view(severity) != "WARNING") return;
        static_cast<Connection*>(self)->warning_ =
            one_line(PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY));
      },
      this);
  PQsetnonblocking(conn_, 1);
  enter_pipeline();
}

std::unique_ptr<Connection> Connection::make_tuned(const Target& target) {
  auto db = std::make_unique<Connection>(target);
  if (target.has_sessions()) db->ask(kSessionSettings);
  return db;
}

Connection::~Connection() { PQfinish(conn_); }

void Connection::enter_pipeline() {
  if (PQenterPipelineMode(conn_) != 1) lose("no pipeline");
}

void Connection::lose(const std::string& why) {
  is_broken_ = true;
  throw PgError(
      "",
      fmt::format("the connection to the store {} was lost; it is made anew, and what was "
                  "asked is asked again ({})",
                  target_.shown, why),
      false);
}

void Connection::fail(const PGresult* result) {
  const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string state = field == nullptr ? "" : field;
  const std::string detail = one_line(PQresultErrorMessage(result));
  if (state.empty() || PQstatus(conn_) != CONNECTION_OK || state.starts_with("57P") ||
      state.starts_with("08")) {
    lose(detail);
  }
  // A server that became a standby: another session finds the one that writes.
  if (state == "25006") is_broken_ = true;
  const Remedy remedy = remedy_of(state);
  throw PgError(state,
                fmt::format("the store {} {} ({}, {})", target_.shown, remedy.text, detail, state),
                remedy.is_permanent);
}

std::string Connection::in_schema(std::string_view sql) const {
  std::string text;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (sql[i] == '@' && i + 1 < sql.size() && sql[i + 1] == '.') {
      text += target_.schema;
    } else {
      text += sql[i];
    }
  }
  return text;
}

void Connection::check_sent(int code) {
  if (code != 1) lose(one_line(PQerrorMessage(conn_)));
}

void Connection::send(const char* sql, const Params& params) {
  Statement& statement = statements_[sql];
  if (statement.text.empty()) {
    statement.text = in_schema(sql);
    statement.name = fmt::format("h{}", statements_.size());
  }
  if (target_.has_pooler) {
    send_text(statement.text, params);
    return;
  }
  if (!statement.is_prepared) {
    check_sent(PQsendPrepare(conn_, statement.name.c_str(), statement.text.c_str(), 0, nullptr));
    expected_.push_back({&statement});
    // Sent twice before it is answered it must not be prepared twice.
    statement.is_prepared = true;
  }
  const auto values = params.pointers();
  check_sent(PQsendQueryPrepared(conn_, statement.name.c_str(), params.size(), values.data(),
                                 params.lengths().data(), params.formats().data(), 0));
  expected_.push_back({});
}

void Connection::send_text(const std::string& sql, const Params& params) {
  const auto values = params.pointers();
  check_sent(PQsendQueryParams(conn_, sql.c_str(), params.size(), nullptr, values.data(),
                               params.lengths().data(), params.formats().data(), 0));
  expected_.push_back({});
}

void Connection::wait_for_server(Wait& wait, bool must_write) {
  pollfd waiting{PQsocket(conn_), static_cast<short>(POLLIN | (must_write ? POLLOUT : 0)), 0};
  const auto begun = Steady::now();
  const Duration most = wait.is_told ? wait.left : std::min(wait.left, kToldAfter - wait.silent);
  const int ready = poll(&waiting, 1, static_cast<int>(std::max(most, Duration(0)).count()));
  if (ready < 0 && errno != EINTR) lose("poll failed");
  const auto passed = std::chrono::duration_cast<Duration>(Steady::now() - begun);
  wait.left -= passed;
  wait.silent += passed;
  if (wait.left <= Duration(0)) lose("no answer in time");
  if (!wait.is_told && wait.silent >= kToldAfter) {
    wait.is_told = true;
    log(LogLevel::warn, "the store has not answered for 5 s; waiting goes on",
        {{"store", target_.shown},
         {"perhaps", std::string(wait.what.empty() ? "another session holds a lock, or the server "
                                                     "is overloaded"
                                                   : wait.what)}});
  }
  if (ready <= 0) return;
  if ((waiting.revents & ~POLLOUT) != 0 && PQconsumeInput(conn_) != 1) {
    lose(one_line(PQerrorMessage(conn_)));
  }
}

std::vector<Result> Connection::flush(Duration patience, std::string_view what) {
  Wait wait{patience, what};
  if (is_broken_) lose("it was lost before");
  warning_.clear();
  check_sent(PQpipelineSync(conn_));
  std::vector<Result> results;
  std::optional<Result> failed;
  while (true) {
    const int unsent = PQflush(conn_);
    if (unsent < 0) lose(one_line(PQerrorMessage(conn_)));
    while (PQisBusy(conn_) == 0) {
      PGresult* raw = PQgetResult(conn_);
      if (raw == nullptr) {
        // Behind the answers of each statement.
        if (expected_.empty()) lose("an answer that was not asked for");
        expected_.pop_front();
        continue;
      }
      Result result(raw);
      const auto status = PQresultStatus(raw);
      if (status == PGRES_PIPELINE_SYNC) {
        expected_.clear();
        if (failed) fail(failed->raw());
        return results;
      }
      const bool is_done = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
      Statement* prepares = expected_.empty() ? nullptr : expected_.front().prepares;
      if (!is_done) {
        if (prepares != nullptr) prepares->is_prepared = false;
        if (PQstatus(conn_) != CONNECTION_OK) fail(raw);
        if (!failed && status != PGRES_PIPELINE_ABORTED) failed.emplace(std::move(result));
      } else if (prepares == nullptr) {
        results.push_back(std::move(result));
      }
    }
    wait_for_server(wait, unsent > 0);
  }
}

void Connection::execute(const std::string& sql, Duration patience, std::string_view what) {
  Wait wait{patience, what};
  if (is_broken_) lose("it was lost before");
  if (PQexitPipelineMode(conn_) != 1) lose(one_line(PQerrorMessage(conn_)));
  check_sent(PQsendQuery(conn_, sql.c_str()));
  std::optional<Result> failed;
  while (true) {
    const int unsent = PQflush(conn_);
    if (unsent < 0) lose(one_line(PQerrorMessage(conn_)));
    if (PQisBusy(conn_) != 0) {
      wait_for_server(wait, unsent > 0);
      continue;
    }
    PGresult* raw = PQgetResult(conn_);
    if (raw == nullptr) break;
    Result result(raw);
    if (PQresultStatus(raw) == PGRES_FATAL_ERROR && !failed) failed.emplace(std::move(result));
  }
  if (failed && PQstatus(conn_) != CONNECTION_OK) fail(failed->raw());
  enter_pipeline();
  if (failed) fail(failed->raw());
}

void Connection::roll_back() noexcept {
  if (is_broken_) return;
  try {
    // What was sent and not asked for yet is answered first.
    if (!expected_.empty()) flush();
  } catch (const StoreError&) {
  }
  try {
    if (!is_broken_ && is_in_transaction()) execute("ROLLBACK");
  } catch (const StoreError&) {
    is_broken_ = true;
  }
}

bool Connection::is_usable() {
  if (is_broken_ || PQstatus(conn_) != CONNECTION_OK) return false;
  // A session that the server ended has something to read, though nothing was asked: its reason,
  // and behind that its end.
  while (wait_readable(Duration(0))) {
    if (PQconsumeInput(conn_) != 1) return false;
  }
  if (PQstatus(conn_) != CONNECTION_OK) return false;
  const auto is_on = [&](const char* setting) {
    const char* value = PQparameterStatus(conn_, setting);
    return value != nullptr && std::string_view(value) == "on";
  };
  return HOLDFAST_GUARD("read_only_left",
                        !is_on("in_hot_standby") && !is_on("default_transaction_read_only"));
}

bool Connection::answers() noexcept {
  static constexpr char kAreYouThere[] = "SELECT 1";
  try {
    ask(kAreYouThere);
    return is_usable();
  } catch (const StoreError&) {
    return false;
  }
}

std::string_view Connection::encoding() const {
  const char* name = PQparameterStatus(conn_, "server_encoding");
  return name == nullptr ? "" : name;
}

bool Connection::wait_readable(Duration timeout, int other_fd) {
  pollfd waiting[2] = {{PQsocket(conn_), POLLIN, 0}, {other_fd, POLLIN, 0}};
  return poll(waiting, other_fd < 0 ? 1 : 2,
              static_cast<int>(std::max(timeout, Duration(0)).count())) > 0 &&
         waiting[0].revents != 0;
}

std::vector<Connection::Notification> Connection::take_notifications() {
  if (PQconsumeInput(conn_) != 1) lose(one_line(PQerrorMessage(conn_)));
  std::vector<Notification> heard;
  while (PGnotify* notify = PQnotifies(conn_)) {
    heard.push_back({notify->extra, notify->be_pid});
    PQfreemem(notify);
  }
  return heard;
}

}  // namespace holdfast::postgres
