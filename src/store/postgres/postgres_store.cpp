#include "store/postgres/postgres_store.hpp"

#include <fmt/format.h>

#include <mutex>

#include "base/guard.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "store/postgres/pg_audit.hpp"
#include "store/postgres/pg_check.hpp"
#include "store/postgres/pg_migrations.hpp"
#include "store/postgres/pg_presence.hpp"
#include "store/postgres/pg_reader.hpp"
#include "store/postgres/pg_statements.hpp"
#include "store/postgres/pg_wake.hpp"
#include "store/postgres/pg_writer.hpp"
#include "store/verb_store.hpp"
#include "store/worker_codec.hpp"

namespace holdfast {
namespace postgres {
namespace {

/// How often a claim that found everything locked by others looks again.
constexpr int kClaimTries = 4;
/// Events that are held back so long are told.
constexpr Duration kHeldQuietly = std::chrono::seconds(1);
constexpr Duration kHeldPause = std::chrono::milliseconds(20);
constexpr Duration kHeldToldEvery = std::chrono::seconds(30);

/// Texts are UTF-8 and have no place in another encoding: a run that holds one would never settle.
void check_encoding(const Connection& db) {
  if (HOLDFAST_GUARD("encoding_refused", db.encoding().empty() || db.encoding() == "UTF8")) return;
  throw StoreError(
      fmt::format("the database of the store {} is encoded in {}, and texts could not be kept as "
                  "they are; make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
                  db.target().shown, db.encoding()),
      true);
}

/// What a restore or a restart left. Who may only read leaves it to others.
void tidy(Connection& db) {
  if (!db.is_usable()) return;  // a standby
  try {
    settle_positions(db);
    db.ask(kTidyPresences);
  } catch (const PgError& error) {
    if (error.is_read_only()) return;
    if (!error.is_refusal()) throw;
    db.roll_back();
    // A role that cannot even read is told what it lacks.
    db.ask(kCanRead);
  }
}

MigrationReport prepare_schema(const Target& target, Env& env) {
  Connection db(target);
  check_encoding(db);
  try {
    const MigrationReport report = migrate_schema(db, env);
    tidy(db);
    return report;
  } catch (const PgError& error) {
    if (!error.is_refusal()) throw;
    db.roll_back();
    const std::string grants = missing_grants(db);
    if (grants.empty()) {
      const int version = schema_version(db);
      if (version == 0 || version == newest_schema()) throw;
      throw PgError(error.state(),
                    fmt::format("the store {} has schema version {}, this build needs {}, and its "
                                "role may not upgrade it: let the owner of the schema run "
                                "`holdfast migrate`",
                                target.shown, version, newest_schema()),
                    true);
    }
    throw PgError(error.state(), fmt::format("{}; what it lacks: {}", error.what(), grants), true);
  }
}

/// The server's wall clock between two questions: by our own, which only tells how long ago it was.
/// Never ahead of the server's, and behind by no more than a journey and the work of a batch. Any
/// thread.
class ServerClock {
 public:
  explicit ServerClock(Env& env) : env_(env) {}

  void learn(WallTime server) {
    const StoreTime here = env_.store_now();
    const std::lock_guard lock(mutex_);
    if (known_ && here - at_ < kLearntAtMostEvery) return;
    known_ = server;
    at_ = here;
  }
  std::optional<WallTime> recall() {
    const StoreTime here = env_.store_now();
    const std::lock_guard lock(mutex_);
    if (!known_ || here - at_ > kKnownFor) return std::nullopt;
    return *known_ + (here - at_);
  }

 private:
  /// Clocks run apart, and another server may take over.
  static constexpr Duration kKnownFor = std::chrono::seconds(1);
  static constexpr Duration kLearntAtMostEvery = std::chrono::milliseconds(100);

  Env& env_;
  std::mutex mutex_;
  std::optional<WallTime> known_;
  StoreTime at_{};
};

class PostgresStore : public VerbStore {
 public:
  PostgresStore(const Target& target, Env& env, const PostgresClock& clock)
      : target_(target),
        env_(env),
        has_own_clock_(static_cast<bool>(clock)),
        clock_(env),
        readers_(
            target, env, [this](const WorkerId& id) { return presence_.is_gone(id); }, clock),
        presence_(target, env, readers_),
        wake_(target, env),
        writer_(
            target, env, [this](const WorkerId& id) { return presence_.is_gone(id); }, clock,
            [this](const auto& queued) { wake_.announce(queued); }) {}

 protected:
  void transact(const Work& work, const Foresight& foresight) override {
    writer_.run(
        [&](Rows& rows) {
          clock_.learn(rows.now().wall);
          work(rows);
        },
        foresight);
  }

  void consult(const Work& work) override {
    readers_.ask_now([&](PgRows& rows, Connection&) {
      work(rows);
      return true;
    });
  }

  void about_to_look() override { wake_.about_to_look(); }

  /// One statement, and none where the last answer still holds.
  verbs::Look look(const ClaimRequest& request) override {
    if (request.only) return {true, std::nullopt};
    if (const auto known = wake_.recall(request)) return *known;
    verbs::Look seen = readers_.ask([&](PgRows&, Connection& db) {
      Array agents(Array::Of::texts);
      for (const AgentOffer& offer : request.agents) agents.add(offer.name);
      Array queues(Array::Of::texts);
      for (const std::string& queue : request.queues) queues.add(queue);
      Params params(agents);
      request.queues.empty() ? params.add_null() : params.add(queues);
      const Result result = db.ask(kLook, params);
      if (result.is_null(0, 0)) return verbs::Look{};
      const WallTime now = has_own_clock_ ? env_.wall_now() : result.wall(0, 1);
      const WallTime first = result.wall(0, 0);
      if (first <= now) return verbs::Look{true, std::nullopt};
      return verbs::Look{false, first - now};
    });
    wake_.remember(seen);
    return seen;
  }

 public:
  /// Where others hold what is due, they may leave some of it: their claims are over in no time.
  ClaimResult claim(const ClaimRequest& request) override {
    for (int tries = 1;; ++tries) {
      ClaimResult result = VerbStore::claim(request);
      if (request.only) return result;
      wake_.remember_claim(request, result.runs.size());
      const bool is_settled = !result.runs.empty() || wake_.found_nothing();
      if (is_settled || tries == kClaimTries) return result;
      env_.sleep_for(Duration(1 + static_cast<std::int64_t>(env_.unit_random() * 4)), {});
    }
  }

  ReapReport reap(int limit, bool dry_run, const Decider& decider) override {
    if (dry_run && !has_own_clock_ && !has_any_to_reap()) return {};
    return VerbStore::reap(limit, dry_run, decider);
  }

  std::optional<Run> find(const RunId& id) override {
    if (!uuid_bytes(id)) return std::nullopt;
    auto found = readers_.ask([&](PgRows& rows, Connection& db) -> std::optional<Run> {
      Params params;
      params.add_raw(id);
      const Result result = db.ask(kFindRun, params);
      if (result.rows() == 0) return std::nullopt;
      RowReader at(result, 0);
      for (int column = 0; column < 32; ++column) at.skip();
      StoredRun cold;
      PgRows::read_cold(cold, at);
      if (const auto text = at.maybe_view())
        cold.run.definition = Json::parse(*text, nullptr, false);
      const Duration server(at.number());
      rows.begin_dry(db, has_own_clock_ ? Now{env_.wall_now(), env_.store_now()}
                                        : Now{WallTime(server), StoreTime(server)});
      StoredRun stored = std::move(rows.read_runs(result).front());
      stored.run.input = std::move(cold.run.input);
      stored.run.answer = std::move(cold.run.answer);
      stored.run.definition = std::move(cold.run.definition);
      stored.run.idempotency_key = std::move(cold.run.idempotency_key);
      stored.run.labels = std::move(cold.run.labels);
      return std::move(stored.run);
    });
    if (found) show_abandoned(std::span(&*found, 1));
    return found;
  }

  RunPage list(const ListFilter& filter) override {
    auto page = readers_.ask_now(
        [&](PgRows& rows, Connection& db) { return list_pg_runs(rows, db, filter); });
    show_abandoned(page.runs);
    return page;
  }

  std::vector<Event> events(const RunId& id, std::int64_t after, int limit) override {
    return readers_.ask(
        [&](PgRows&, Connection& db) { return read_pg_events(db, id, after, limit); });
  }

  /// Empty while there are events that an open transaction holds back: waited for a moment, and
  /// then told.
  std::vector<Event> all_events(std::int64_t& cursor, int limit) override {
    const StoreTime begun = env_.store_now();
    while (true) {
      bool is_held = false;
      auto found = readers_.ask([&](PgRows&, Connection& db) {
        auto events = read_all_pg_events(db, cursor, limit);
        is_held = events.empty() && db.ask(kHeldEvents, Params(cursor)).view(0, 0) == "t";
        return events;
      });
      if (!is_held) return found;
      if (env_.store_now() - begun >= kHeldQuietly) {
        tell_held_back();
        return found;
      }
      env_.sleep_for(kHeldPause, {});
    }
  }

  StoreStats stats() override {
    return readers_.ask_now([&](PgRows& rows, Connection& db) {
      return read_pg_stats(db, rows.now(), has_own_clock_);
    });
  }

  void report_worker(const WorkerRow& row) override {
    HOLDFAST_FAILPOINT("store.report_worker.before");
    transact(
        [&](Rows& rows) {
          Params params(row.id, rows.now().store);
          params.add_raw(dump_json(encode(row)));
          static_cast<PgRows&>(rows).then(kReportWorker, std::move(params));
        },
        {});
    HOLDFAST_FAILPOINT("store.report_worker.after");
  }

  void forget_worker(const WorkerId& id) override {
    HOLDFAST_FAILPOINT("store.forget_worker.before");
    wake_.forget(id);
    transact([&](Rows& rows) { static_cast<PgRows&>(rows).then(kForgetWorker, Params(id)); }, {});
    HOLDFAST_FAILPOINT("store.forget_worker.after");
  }

  std::vector<WorkerRow> workers() override {
    std::vector<WorkerId> ids;
    auto found = readers_.ask([&](PgRows&, Connection& db) {
      const Result result = db.ask(kWorkers);
      std::vector<WorkerRow> rows;
      ids.clear();
      for (int row = 0; row < result.rows(); ++row) {
        rows.push_back(decode_worker(parse_json(result.view(row, 2)).value_or(Json::object())));
        rows.back().id = result.text(row, 0);
        rows.back().seen_at = StoreTime(Duration(result.number(row, 1)));
        if (rows.back().presence == "held") ids.push_back(rows.back().id);
      }
      return rows;
    });
    const auto gone = presence_.gone_among(ids);
    for (WorkerRow& row : found) row.is_gone = gone.contains(row.id);
    return found;
  }

  std::vector<Circuit> circuits() override {
    return readers_.ask([](PgRows&, Connection& db) {
      std::vector<Circuit> found;
      const Result result = db.ask(kCircuits);
      for (int row = 0; row < result.rows(); ++row) {
        found.push_back(
            decode_circuit(result.text(row, 0), parse_json(result.view(row, 1)).value_or(Json())));
      }
      return found;
    });
  }

  PresenceBoard* presence() override { return target_.has_sessions() ? &presence_ : nullptr; }

  void wait_for_work(Duration max, const std::stop_token& stop) override { wake_.wait(max, stop); }

  StoreTime now() override { return clocks().store; }
  /// Asked for at every settlement: the server tells it with every write.
  WallTime wall_now() override {
    if (has_own_clock_) return clocks().wall;
    if (const auto known = clock_.recall()) return *known;
    const WallTime now = clocks().wall;
    clock_.learn(now);
    return now;
  }

  void backup(const std::string&) override {
    throw RefusedError(Refusal::usage,
                       "a PostgreSQL store is backed up with the server's own tools (pg_dump, "
                       "pg_basebackup)");
  }

  std::vector<Finding> check() override {
    return readers_.ask([](PgRows&, Connection& db) { return check_pg_server(db); });
  }
  std::vector<Finding> audit() override {
    return readers_.ask([](PgRows&, Connection& db) { return audit_pg_rows(db); });
  }

 private:
  Now clocks() {
    return readers_.ask_now([](PgRows& rows, Connection&) { return rows.now(); });
  }

  bool has_any_to_reap() {
    return readers_.ask(
        [](PgRows&, Connection& db) { return db.ask(kAnyToReap).view(0, 0) == "t"; });
  }

  void tell_held_back() {
    {
      const std::lock_guard lock(held_mutex_);
      const StoreTime now = env_.store_now();
      if (held_told_ && now - *held_told_ < kHeldToldEvery) return;
      held_told_ = now;
    }
    log(LogLevel::warn,
        "newer events are held back by a transaction that is still open on the server; `holdfast "
        "doctor` names one that stays",
        {{"store", target_.shown}});
  }

  void show_abandoned(std::span<Run> runs) {
    const auto is_interactive = [](const Run& run) {
      return run.status.is(Status::running) && !run.lease_until && run.claimed_by;
    };
    std::vector<WorkerId> ids;
    for (const Run& run : runs) {
      if (is_interactive(run)) ids.push_back(*run.claimed_by);
    }
    if (ids.empty() || !target_.has_sessions()) return;
    const auto gone = presence_.gone_among(ids);
    for (Run& run : runs) run.abandoned = is_interactive(run) && gone.contains(*run.claimed_by);
  }

  const Target target_;
  Env& env_;
  const bool has_own_clock_;
  std::mutex held_mutex_;
  std::optional<StoreTime> held_told_;
  ServerClock clock_;
  PgReaderPool readers_;
  PgPresence presence_;
  PgWake wake_;
  PgWriter writer_;
};

}  // namespace
}  // namespace postgres

std::unique_ptr<Store> open_postgres_store(const std::string& url, Env& env,
                                           const PostgresClock& clock) {
  const auto target = postgres::parse_target(url);
  postgres::prepare_schema(target, env);
  return std::make_unique<postgres::PostgresStore>(target, env, clock);
}

MigrationReport migrate_postgres_store(const std::string& url, Env& env) {
  return postgres::prepare_schema(postgres::parse_target(url), env);
}

}  // namespace holdfast
