// Speed over a PostgreSQL server of the program's own, which it starts and ends: on this machine,
// unprivileged, in the temporary folder, as durable as it comes (fsync, synchronous_commit).
//
//   postgres_bench [PART] [FINISHED]   one part (steps, drain, enqueue, latency, beside, old,
//                                      renewals, idle, herd), or all; FINISHED: how many finished
//                                      runs lie beside the drain of `beside` (100000)

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "engine_rates.hpp"
#include "latency.hpp"
#include "store/postgres/connection.hpp"
#include "support/postgres_server.hpp"

namespace holdfast {
namespace {

using testing::PostgresServer;

constexpr int kThreads = 64;
constexpr int kDrained = 20'000;

const std::vector<std::string> kDurable = {
    "fsync=on",         "synchronous_commit=on",
    "autovacuum=on",    "shared_buffers=256MB",
    "max_wal_size=4GB", "shared_preload_libraries=pg_stat_statements"};

NewRun new_run() {
  NewRun run;
  run.row.id = real_env().new_id();
  run.row.agent = "agent";
  run.row.input = "do it";
  run.content_digest = std::string(64, 'd');
  return run;
}

double seconds_of(const std::function<void()>& work) {
  const StoreTime begun = real_env().store_now();
  work();
  return seconds_since(begun);
}

/// What the server's processes and this one have used of processors, in seconds.
double processor_seconds(pid_t server) {
  double ticks = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    std::ifstream file(entry.path() / "stat");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(text.substr(name_end + 1));
    std::string skipped;
    pid_t parent = 0;
    fields >> skipped >> parent;
    if (parent != server) continue;
    for (int field = 5; field <= 13; ++field) fields >> skipped;
    double user = 0;
    double system = 0;
    fields >> user >> system;
    ticks += user + system;
  }
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) + static_cast<double>(own.tv_sec) +
         static_cast<double>(own.tv_nsec) / 1e9;
}

/// Processor time of the server and of this process together since `start`, which tells what a
/// machine that is busy with other things does to a rate.
class Meter {
 public:
  explicit Meter(const PostgresServer& server) : server_(server.pid()) {}
  void start() { before_ = processor_seconds(server_); }
  void print(int count) const {
    holdfast::print("  processor time for each",
                    (processor_seconds(server_) - before_) * 1e6 / count, "us");
  }

 private:
  const pid_t server_;
  double before_ = 0;
};

/// A store in a schema of its own, dropped at the end.
class Place {
 public:
  explicit Place(const PostgresServer& server)
      : url(server.url(PostgresServer::fresh_schema())), store(open_store(url, real_env())) {}
  Place(const Place&) = delete;
  ~Place() {
    store.reset();
    postgres::Connection db(postgres::parse_target(url));
    db.execute(fmt::format("DROP SCHEMA {} CASCADE", db.target().schema), std::chrono::minutes(5));
  }
  std::string ask(const std::string& sql) const {
    postgres::Connection db(postgres::parse_target(url));
    db.send_text(db.in_schema(sql));
    return std::string(db.flush().front().view(0, 0));
  }
  void execute(const std::string& sql) const {
    postgres::Connection db(postgres::parse_target(url));
    db.execute(db.in_schema(sql), std::chrono::hours(1));
  }

  const std::string url;
  std::unique_ptr<Store> store;
};

void measure_steps(const PostgresServer& server) {
  const Place place(server);
  Meter meter(server);
  constexpr int kSteps = 1000;
  print(fmt::format("durable no-op steps, {} runs in flight", kThreads),
        step_rate(*place.store, kThreads, kSteps, [&] { meter.start(); }), "steps/s");
  meter.print(kThreads * kSteps);
}

double measure_drain(const PostgresServer& server) {
  const Place place(server);
  Meter meter(server);
  const double rate = drain_rate(*place.store, kDrained, [&] { meter.start(); });
  print(fmt::format("drain of {} no-op runs, concurrency 100", kDrained), rate, "runs/s");
  meter.print(kDrained);
  return rate;
}

void measure_enqueue(const PostgresServer& server) {
  const Place place(server);
  constexpr int kRuns = 60'000;
  std::vector<std::vector<NewRun>> batches(kRuns / 1000);
  for (auto& batch : batches) {
    for (int i = 0; i < 1000; ++i) batch.push_back(new_run());
  }
  Meter meter(server);
  meter.start();
  print("enqueue in batches of 1000", kRuns / seconds_of([&] {
                                        for (const auto& batch : batches)
                                          place.store->enqueue(batch);
                                      }),
        "runs/s");
  meter.print(kRuns);
  constexpr int kEach = 400;
  meter.start();
  print(fmt::format("enqueue one by one from {} threads", kThreads),
        kThreads * kEach / seconds_of([&] {
          std::vector<std::unique_ptr<Thread>> threads;
          for (int i = 0; i < kThreads; ++i) {
            threads.push_back(real_env().spawn({}, [&] {
              for (int done = 0; done < kEach; ++done) {
                const NewRun run = new_run();
                place.store->enqueue(std::span(&run, 1));
              }
            }));
          }
        }),
        "runs/s");
  meter.print(kThreads * kEach);
}

void measure_latency(const PostgresServer& server) {
  const Place place(server);
  measure_pick_up(place.url);
  measure_second_start(place.url);
}

/// Copies of one run that has ended, with its data and its events.
/// Their ids grow with time, as those of real runs do.
void add_finished(const Place& place, int count) {
  drain_rate(*place.store, 1);
  constexpr int kAtOnce = 100'000;
  for (int done = 0; done < count; done += kAtOnce) {
    place.execute(fmt::format(
        "BEGIN; CREATE TEMP TABLE fresh ON COMMIT DROP AS SELECT (lpad(to_hex(1700000000000 + n), "
        "12, '0') || '7' || substr(md5(n::text), 1, 19))::uuid AS fresh_id, "
        "n FROM generate_series({}, {}) n; "
        "CREATE TEMP TABLE one ON COMMIT DROP AS SELECT * FROM @.runs LIMIT 1; "
        "CREATE TEMP TABLE many ON COMMIT DROP AS SELECT one.*, fresh_id FROM one, fresh; "
        "UPDATE many SET id = fresh_id, row = nextval('@.run_rows'); "
        "ALTER TABLE many DROP COLUMN fresh_id; INSERT INTO @.runs SELECT * FROM many; "
        "INSERT INTO @.run_data SELECT f.fresh_id, d.input, d.answer, d.definition, NULL, "
        "d.content_digest FROM one JOIN @.run_data d ON d.run = one.id, fresh f; "
        "INSERT INTO @.events SELECT f.fresh_id, e.sequence, "
        "pg_current_xact_id()::text::bigint * 1048576 + f.n % 100000 * 10 + e.sequence, e.kind, "
        "e.at, e.claim, e.operation, e.payload FROM one JOIN @.events e ON e.run = one.id, fresh "
        "f; COMMIT",
        done + 1, std::min(count, done + kAtOnce)));
  }
  place.execute("VACUUM (ANALYZE) @.runs");
  place.execute("VACUUM (ANALYZE) @.run_data");
  place.execute("VACUUM (ANALYZE) @.events");
}

void measure_beside(const PostgresServer& server, int finished) {
  const double empty = measure_drain(server);
  const Place place(server);
  add_finished(place, finished);
  Meter meter(server);
  const double rate = drain_rate(*place.store, kDrained, [&] { meter.start(); });
  print(fmt::format("  the same beside {} finished runs", finished), rate, "runs/s");
  meter.print(kDrained);
  print("  of the empty rate", 100 * rate / empty, "%");
}

/// Somebody's transaction that stays open: the server keeps for it every row that workers are
/// through with.
void measure_old(const PostgresServer& server) {
  measure_drain(server);
  const Place place(server);
  postgres::Connection old(postgres::parse_target(place.url));
  old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1");
  const auto drain = [&](const std::string& what) {
    Meter meter(server);
    print(what, drain_rate(*place.store, kDrained, [&] { meter.start(); }), "runs/s");
    meter.print(kDrained);
  };
  for (int age = 0; age < 3; ++age) {
    drain(fmt::format("  the same beside a transaction {} runs old", age * kDrained));
  }
  old.execute("COMMIT");
  place.execute("VACUUM @.runs");
  drain("  and when it is over");
}

void measure_renewals(const PostgresServer& server) {
  constexpr int kWorkers = 10;
  constexpr int kLeases = 1000;
  constexpr int kRounds = 5;
  const Place place(server);
  std::vector<std::vector<Lease>> leases(kWorkers);
  AgentOffer offer;
  offer.name = "agent";
  const auto name = [](std::size_t worker) { return fmt::format("worker-{}", worker); };
  enqueue(*place.store, offer.name, kWorkers * kLeases);
  for (std::size_t worker = 0; worker < leases.size(); ++worker) {
    while (leases[worker].size() < kLeases) {
      const int missing = kLeases - static_cast<int>(leases[worker].size());
      for (const auto& run : place.store->claim({name(worker), {offer}, {}, missing, {}}).runs) {
        leases[worker].push_back(run.lease);
      }
    }
  }
  const auto updates = [&](const char* column) {
    return std::stod(place.ask(
        fmt::format("SELECT {} FROM pg_stat_all_tables WHERE relid = '@.runs'::regclass", column)));
  };
  // A server's session that has nothing to do counts what it did ten seconds later.
  const auto all_are_counted = [&](double number) {
    for (int looks = 0; looks < 150 && updates("n_tup_upd") < number; ++looks) {
      real_env().sleep_for(std::chrono::milliseconds(200), {});
    }
    return updates("n_tup_upd");
  };
  const double all_before = all_are_counted(kWorkers * kLeases);
  const double hot_before = updates("n_tup_hot_upd");
  const double before = processor_seconds(server.pid());
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t worker = 0; worker < leases.size(); ++worker) {
      place.store->renew(name(worker), leases[worker]);
    }
  }
  const double used = processor_seconds(server.pid()) - before;
  const double interval =
      std::chrono::duration<double>(RuntimeOptions{}.heartbeat).count() * kRounds;
  print(fmt::format("renewing {} leases of {} workers", kWorkers * kLeases, kWorkers),
        100 * used / interval, "% of a core");
  const double all = all_are_counted(all_before + kRounds * kWorkers * kLeases) - all_before;
  print(fmt::format("  of its {} updates heap-only", static_cast<std::int64_t>(all)),
        100 * (updates("n_tup_hot_upd") - hot_before) / all, "%");
}

/// Statements beside those of presence and of what a heartbeat writes: renewals, of which an idle
/// worker has none, and its row among the workers.
void measure_idle(const PostgresServer& server) {
  constexpr int kSeconds = 20;
  const Place place(server);
  place.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public");
  const auto calls = [&](const char* which) {
    return std::stod(place.ask(
        fmt::format("SELECT coalesce(sum(calls), 0) FROM public.pg_stat_statements WHERE query {} "
                    "'presences|advisory|pg_stat|tcp_keepalives|[.]workers|set_config'",
                    which)));
  };
  with_idle_workers(place.url, 1, [&] {
    real_env().sleep_for(std::chrono::seconds(3), {});
    const double others = calls("!~");
    const double presence = calls("~");
    real_env().sleep_for(std::chrono::seconds(kSeconds), {});
    print("an idle worker", (calls("!~") - others) / kSeconds, "statements/s");
    print("  and for presence and its own row", (calls("~") - presence) / kSeconds, "statements/s");
  });
}

/// What one run that is put on the queue costs where many workers wait for it.
void measure_herd(const PostgresServer& server) {
  constexpr int kWorkers = 8;
  constexpr int kRuns = 200;
  const Place place(server);
  place.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements WITH SCHEMA public");
  const auto calls = [&](const char* part) {
    return std::stod(place.ask(fmt::format(
        "SELECT coalesce(sum(calls), 0) FROM public.pg_stat_statements WHERE query LIKE "
        "'%{}%'",
        part)));
  };
  with_idle_workers(place.url, kWorkers, [&] {
    // Until all know one another.
    real_env().sleep_for(std::chrono::seconds(3), {});
    run_singly(place.url, 1);
    const std::vector<std::pair<std::string, const char*>> parts = {
        {"claims", "SKIP LOCKED) r JOIN"},
        {"looks, with those of waiting", "SELECT (SELECT min(n.available_at)"},
        {"notifications", "pg_notify"}};
    std::vector<double> before;
    for (const auto& [name, part] : parts) before.push_back(calls(part));
    run_singly(place.url, kRuns);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      print(fmt::format("{} idle workers: {}", kWorkers, parts[i].first),
            (calls(parts[i].second) - before[i]) / kRuns, "a run");
    }
  });
}

int run_parts(const std::string& only, int finished) {
  const auto wanted = [&](const char* name) { return only.empty() || only == name; };
  const PostgresServer server(kDurable);
  if (wanted("steps")) measure_steps(server);
  if (only == "drain") measure_drain(server);
  if (wanted("beside")) measure_beside(server, finished);
  if (wanted("old")) measure_old(server);
  if (wanted("enqueue")) measure_enqueue(server);
  if (wanted("latency")) measure_latency(server);
  if (wanted("renewals")) measure_renewals(server);
  if (wanted("idle")) measure_idle(server);
  if (wanted("herd")) measure_herd(server);
  return 0;
}

}  // namespace
}  // namespace holdfast

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "worker") return holdfast::work(arguments[2]);
  return holdfast::run_parts(count > 1 ? arguments[1] : "",
                             count > 2 ? std::atoi(arguments[2]) : 100'000);
}
