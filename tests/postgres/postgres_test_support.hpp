#pragma once

#include <algorithm>
#include <functional>

#include "conformance/store_test_support.hpp"
#include "store/postgres/connection.hpp"
#include "support/tcp_proxy.hpp"

namespace holdfast::testing {

/// A schema of its own on the program's server, under the server's clock.
class PostgresTest : public ::testing::Test {
 protected:
  explicit PostgresTest(PostgresServer& used = PostgresServer::shared()) : server(used) {}
  std::string url(const std::string& more = "") const { return server.url(schema, more); }
  std::string proxied_url(const TcpProxy& proxy, const std::string& more = "") const {
    return server.tcp_url(proxy.port(), schema, more);
  }
  std::unique_ptr<Store> open(const std::string& more = "") {
    return open_store(url(more), real_env());
  }
  /// A session of somebody else.
  std::unique_ptr<postgres::Connection> session() const {
    return std::make_unique<postgres::Connection>(postgres::parse_target(url()));
  }
  postgres::Result ask(postgres::Connection& db, const std::string& sql) const {
    db.send_text(db.in_schema(sql));
    return std::move(db.flush().front());
  }
  std::int64_t ask_number(const std::string& sql) const {
    return ask(*session(), sql).number(0, 0);
  }
  static RunId enqueue(Store& store) {
    const NewRun run = a_run(real_env());
    store.enqueue(std::span(&run, 1));
    return run.row.id;
  }
  static std::vector<Claimed> claim(Store& store, const WorkerId& worker, int limit = 1) {
    return store.claim({worker, {offer()}, {}, limit, {}}).runs;
  }
  static bool eventually(const std::function<bool()>& holds, Duration within = 10s) {
    const StoreTime until = real_env().store_now() + within;
    while (real_env().store_now() < until) {
      if (holds()) return true;
      real_env().sleep_for(5ms, {});
    }
    return holds();
  }
  /// Sessions that listen for new runs, or tell of them.
  std::string notified_sessions() const {
    return "FROM pg_stat_activity WHERE (query LIKE 'LISTEN%" + schema +
           "%' OR query LIKE '%pg_notify%" + schema + "%') AND pid <> pg_backend_pid()";
  }
  /// As an idle worker looks for work: how long until it had some.
  static Duration pick_up(Store& store, const WorkerId& worker) {
    const StoreTime begun = real_env().store_now();
    const std::stop_token never;
    while (claim(store, worker).empty()) {
      if (real_env().store_now() - begun > 10s) break;
      store.wait_for_work(200ms, never);
    }
    return real_env().store_now() - begun;
  }
  static std::string refusal(const std::string& url) {
    try {
      open_store(url, real_env());
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  PostgresServer& server;
  const std::string schema = PostgresServer::fresh_schema();
};

}  // namespace holdfast::testing
