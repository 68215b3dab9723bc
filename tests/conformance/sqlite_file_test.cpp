// What only a file can meet: damage, foreign owners, other versions, removal, other processes.

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "base/text.hpp"
#include "conformance/sqlite_file_support.hpp"
#include "store/sqlite/migrations.hpp"
#include "store/sqlite/open_checks.hpp"

namespace holdfast::testing {
namespace {

TEST_F(SqliteFile, RefusesUrlsOfOtherForms) {
  for (const char* url : {"", "sqlite:", "runs.db", "mysql:x", "memory:x", "postgresql:x"}) {
    EXPECT_THROW(open_store(url, env), RefusedError) << url;
  }
}

TEST_F(SqliteFile, RefusesAFolder) {
  mkdir(path().c_str(), 0700);
  EXPECT_THROW(open(), StoreError);
  EXPECT_TRUE(std::filesystem::is_empty(path()));
  EXPECT_NE(access((path() + "-lock").c_str(), F_OK), 0);
}

TEST_F(SqliteFile, RefusesAPathInAFolderThatIsMissing) {
  EXPECT_THROW(open_store("sqlite:" + folder.file("missing/runs.db"), env), StoreError);
}

TEST_F(SqliteFile, RefusesWhatIsNotADatabase) {
  write(
      "These are only words, and more than a hundred of them would be too many to read here. "
      "These are only words.");
  EXPECT_TRUE(has(refusal(), "is not a SQLite database"));
  write("short");
  EXPECT_TRUE(has(refusal(), "is not a SQLite database"));
}

TEST_F(SqliteFile, RefusesAFileThatWasCutOff) {
  {
    auto store = open();
    for (int i = 0; i < 50; ++i) enqueue(*store);
  }
  execute("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string whole = bytes(path());
  unlink((path() + "-wal").c_str());
  write(whole.substr(0, whole.size() - 100));
  EXPECT_TRUE(has(refusal(), "was cut off"));
  write(whole.substr(0, whole.size() - 4096));
  EXPECT_TRUE(has(refusal(), "was cut off"));
  write(whole);
  EXPECT_EQ(open()->stats().by_status.at("queued"), 50);
}

TEST_F(SqliteFile, RefusesALogWithoutItsDatabase) {
  {
    auto store = open();
    enqueue(*store);
  }
  ASSERT_GT(bytes(path() + "-wal").size(), 0u);
  unlink(path().c_str());
  EXPECT_THROW(open(), StoreError);
  EXPECT_NE(access(path().c_str(), F_OK), 0);
}

TEST_F(SqliteFile, TakesNoNoticeOfAForeignIndexOfTheLog) {
  std::string id;
  {
    auto store = open();
    id = enqueue(*store).id;
  }
  {
    auto other = open_store("sqlite:" + folder.file("other.db"), env);
    for (int i = 0; i < 20; ++i) enqueue(*other);
  }
  std::filesystem::copy_file(folder.file("other.db-shm"), path() + "-shm",
                             std::filesystem::copy_options::overwrite_existing);
  auto store = open();
  EXPECT_TRUE(store->find(id).has_value());
  EXPECT_EQ(store->stats().by_status.at("queued"), 1);
  EXPECT_EQ(enqueue(*store).status, Status::queued);
}

TEST_F(SqliteFile, RefusesALogOfAnotherStore) {
  const std::string other_path = folder.file("other.db");
  for (const int writes : {1, 20}) {
    for (const std::string& file : {path(), other_path}) {
      auto store = open_store("sqlite:" + file, env);
      for (int i = 0; i < writes; ++i) enqueue(*store);
    }
    const std::string own_log = bytes(path() + "-wal");
    ASSERT_FALSE(own_log.empty());
    std::filesystem::copy_file(other_path + "-wal", path() + "-wal",
                               std::filesystem::copy_options::overwrite_existing);
    const std::string foreign_log = bytes(path() + "-wal");
    EXPECT_TRUE(has(refusal(), "log of another store"));
    EXPECT_EQ(bytes(path() + "-wal"), foreign_log);
    std::ofstream(path() + "-wal", std::ios::binary) << own_log;
    EXPECT_GE(open()->stats().by_status.at("queued"), writes);
  }
}

TEST_F(SqliteFile, RefusesALogOfAnotherStoreThatBeganAnew) {
  const std::string other_path = folder.file("other.db");
  auto store = open();
  enqueue(*store);
  auto other = open_store("sqlite:" + other_path, env);
  NewRun large = a_run(env);
  large.row.input = std::string(900'000, 'x');
  std::uintmax_t longest = 0;
  // Until it is copied back into the file and begins anew, a few commits ago.
  for (int i = 0; i < 200; ++i) {
    large.row.id = env.new_id();
    large.content_digest = large.row.id;
    other->enqueue(std::span(&large, 1));
    const auto size = std::filesystem::file_size(other_path + "-wal");
    if (size == longest) break;
    longest = size;
  }
  for (int i = 0; i < 3; ++i) enqueue(*other);
  other.reset();
  store.reset();
  std::filesystem::copy_file(other_path + "-wal", path() + "-wal",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_TRUE(has(refusal(), "log of another store"));
}

TEST_F(SqliteFile, WarnsOfANetworkFileSystem) {
  for (const std::uint32_t type : {0x6969u, 0xFF534D42u, 0xFE534D42u, 0x517Bu, 0x65735546u,
                                   0x01021997u, 0x00C36400u, 0x0BD00BD0u}) {
    const auto finding = sqlite::check_file_system("/far/runs.db", type);
    ASSERT_TRUE(finding) << type;
    EXPECT_EQ(finding->grade, Finding::Grade::warning);
    EXPECT_TRUE(has(finding->text, "/far/runs.db") && has(finding->text, "local disk"));
  }
  EXPECT_TRUE(has(sqlite::check_file_system("x", 0x6969)->text, "NFS"));
  // ext, XFS, Btrfs, ZFS, tmpfs, overlay
  for (const std::uint32_t type :
       {0xEF53u, 0x58465342u, 0x9123683Eu, 0x2FC12FC1u, 0x01021994u, 0x794C7630u}) {
    EXPECT_FALSE(sqlite::check_file_system("x", type)) << type;
  }
  EXPECT_NE(sqlite::file_system_of(folder.file("")), 0u);
  EXPECT_EQ(sqlite::file_system_of(folder.file("missing")), 0u);
}

TEST_F(SqliteFile, RefusesADatabaseOfAnotherProgram) {
  execute("CREATE TABLE notes (text)");
  EXPECT_TRUE(has(refusal(), "another program"));
  execute("PRAGMA journal_mode = WAL");
  EXPECT_TRUE(has(refusal(), "another program"));
  execute("DROP TABLE notes; PRAGMA application_id = 7");
  EXPECT_TRUE(has(refusal(), "another program"));
}

TEST_F(SqliteFile, TakesAnEmptyFileAndAnEmptyDatabase) {
  write("");
  open();
  unlink(path().c_str());
  unlink((path() + "-wal").c_str());
  unlink((path() + "-shm").c_str());
  execute("VACUUM");
  open();
}

TEST_F(SqliteFile, RefusesANewerSchemaNamingBothVersions) {
  { open(); }
  execute("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string text = refusal();
  EXPECT_TRUE(has(text, "99")) << text;
  EXPECT_TRUE(has(text, "up to " + std::to_string(sqlite::newest_version()))) << text;
}

TEST_F(SqliteFile, MigrationReportsTheVersionsBeforeAndAfter) {
  const auto first = migrate_store(url(), env);
  EXPECT_EQ(first.before, 0);
  EXPECT_EQ(first.after, sqlite::newest_version());
  EXPECT_EQ(migrate_store(url(), env).before, sqlite::newest_version());
}

/// Migrations that landed are never edited: a new one is added, and its digest here.
TEST_F(SqliteFile, LandedMigrationsAreUnchanged) {
  const std::vector<std::string> digests{
      "15797908216ef331fd1b791a0a09a788c829865815d60a0759a920e43a8b51a1",
      "de7267bd3d30a26a062225834f8d840d143712b8c3563a4aa1e40bbb07cd5f48",
  };
  ASSERT_EQ(digests.size(), static_cast<std::size_t>(sqlite::newest_version()));
  for (std::size_t i = 0; i < digests.size(); ++i) {
    EXPECT_EQ(sha256_hex(sqlite::migration_text(static_cast<int>(i) + 1)), digests[i]);
  }
}

TEST_F(SqliteFile, FilesAreReadableByTheirOwnerOnly) {
  auto store = open();
  enqueue(*store);
  store->wait_for_work(0ms, {});
  for (const char* suffix : {"", "-wal", "-shm", "-lock", "-wake"}) {
    struct stat info {};
    ASSERT_EQ(stat((path() + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
}

TEST_F(SqliteFile, NoticesThatItsFileWasRemoved) {
  auto store = open();
  const auto run = enqueue(*store);
  unlink(path().c_str());
  EXPECT_THROW(enqueue(*store), StoreError);
  EXPECT_THROW(store->find(run.id), StoreError);
}

TEST_F(SqliteFile, NoticesThatItsFileWasReplaced) {
  auto store = open();
  enqueue(*store);
  std::filesystem::rename(path(), path() + ".old");
  write("");
  EXPECT_THROW(enqueue(*store), StoreError);
  EXPECT_EQ(bytes(path()), "");
}

TEST_F(SqliteFile, NoticesThatItsLogWasRemoved) {
  auto store = open();
  enqueue(*store);
  unlink((path() + "-wal").c_str());
  EXPECT_THROW(enqueue(*store), StoreError);
}

TEST_F(SqliteFile, KeepsRunsOverReopening) {
  std::string id;
  {
    auto store = open();
    id = enqueue(*store).id;
  }
  EXPECT_EQ(open()->find(id)->status, Status::queued);
}

TEST_F(SqliteFile, AnotherBootEndsAllLeasesFencesAndCircuits) {
  std::string id;
  {
    auto store = open();
    id = enqueue(*store).id;
    const auto claimed = store->claim({"w", {offer()}, {}, 1, {}}).runs.at(0);
    store->fence(claimed.lease, a_fence("pay#1"));
    CallEnd spent;
    spent.what = CallEnd::What::failed;
    spent.cls = FailureClass::quota_exhausted;
    store->note_call("main/gpt", spent, {});
    EXPECT_TRUE(store->admit_call("main/gpt", 1s).is_open);
  }
  EXPECT_FALSE(open()->find(id)->lease_lost_by_presence);
  env.reboot("second-boot");
  auto store = open();
  EXPECT_FALSE(store->admit_call("main/gpt", 1s).is_open) << "its clock counts no more";
  const auto run = *store->find(id);
  EXPECT_EQ(run.lease_until, StoreTime{});
  EXPECT_TRUE(run.lease_lost_by_presence);
  EXPECT_EQ(run.pending->deadline, StoreTime{});
  EXPECT_EQ(run.pending->step_key, "pay#1");
  EXPECT_EQ(store->reap(50, false, worker_lost(env)).dead_lettered, 1);
}

TEST_F(SqliteFile, WordsOfANewerBuildAreKeptShownAndLeftAlone) {
  auto store = open();
  const auto run = enqueue(*store);
  const auto claimed = store->claim({"w", {offer()}, {}, 1, {}}).runs.at(0);
  execute(
      "UPDATE runs SET status = 'paused', reason = 'moon', origin = 'space'; "
      "UPDATE events SET kind = 'orbited' WHERE sequence = 2");
  const auto found = *store->find(run.id);
  EXPECT_EQ(found.status.text(), "paused");
  EXPECT_EQ(found.reason->text(), "moon");
  EXPECT_EQ(found.origin.text(), "space");
  EXPECT_EQ(store->events(run.id, 1, 1).at(0).kind.text(), "orbited");
  EXPECT_EQ(store->list({}).runs.at(0).status.text(), "paused");
  env.advance(std::chrono::hours(24 * 365));
  EXPECT_TRUE(store->claim({"w", {offer()}, {}, 1, {}}).runs.empty());
  EXPECT_EQ(store->reap(50, false, worker_lost(env)).requeued, 0);
  EXPECT_EQ(store->record(claimed.lease, a_step("a")), Write::lost);
  EXPECT_EQ(store->cancel(run.id, by()).answer, ChangeResult::Answer::refused);
  PurgeRequest purge;
  purge.older_than = purge.unfinished_older_than = 0s;
  EXPECT_EQ(store->purge(purge, 10).total, 0);
  purge.ids = {run.id};
  EXPECT_EQ(store->purge(purge, 10).total, 0);
  EXPECT_EQ(store->find(run.id)->status.text(), "paused");
}

TEST_F(SqliteFile, PurgeByAgePassesOverWordsOfANewerBuild) {
  auto store = open();
  for (int i = 0; i < 6; ++i) {
    const auto run = enqueue(*store);
    store->cancel(run.id, by());
    env.advance(1s);
  }
  execute("UPDATE runs SET status = 'paused' WHERE row <= 4");
  PurgeRequest purge;
  purge.older_than = 0s;
  EXPECT_EQ(store->purge(purge, 2).total, 2);
  EXPECT_EQ(store->list({}).runs.size(), 4u);
}

TEST_F(SqliteFile, BackupInUseIsWholeAndOverwritesNothing) {
  auto store = open();
  const auto run = enqueue(*store);
  const std::string copy = folder.file("copy.db");
  {
    std::stop_source stop;
    auto writing = env.spawn({}, [&] {
      while (!stop.stop_requested()) enqueue(*store);
    });
    store->backup(copy);
    stop.request_stop();
  }
  auto restored = open_store("sqlite:" + copy, env);
  EXPECT_TRUE(restored->find(run.id).has_value());
  for (const Finding& finding : restored->check()) {
    EXPECT_NE(finding.grade, Finding::Grade::bad) << finding.text;
  }
  const std::string before = bytes(copy);
  EXPECT_THROW(store->backup(copy), RefusedError);
  EXPECT_EQ(bytes(copy), before);
  EXPECT_THROW(store->backup(folder.file("missing/copy.db")), StoreError);
}

TEST_F(SqliteFile, WakesAWorkerOfAnotherStoreOnTheFile) {
  auto store = open();
  auto other = open();
  EXPECT_TRUE(store->claim({"w", {offer()}, {}, 1, {}}).runs.empty());
  enqueue(*other);
  // Announced between the look and the wait: found without waiting for the poll.
  const StoreTime before = real_env().store_now();
  store->wait_for_work(1h, {});
  EXPECT_LT(real_env().store_now() - before, 200ms);
  unlink((path() + "-wake").c_str());
  // Without the file the wait ends by itself.
  store->wait_for_work(1h, {});
}

TEST_F(SqliteFile, PresenceFileRemovedFromOutsideIsNoticed) {
  auto store = open();
  const Identity identity = env.make_identity();
  auto hold = store->presence()->hold(identity);
  unlink((path() + "-workers/" + identity.id).c_str());
  EXPECT_FALSE(hold->is_intact());
}

TEST_F(SqliteFile, HolderOfLeasesWithoutAFileBecomesASuspect) {
  auto store = open();
  enqueue(*store);
  store->claim({"vanished", {offer()}, {}, 1, {}});
  EXPECT_TRUE(store->presence()->watch(0ms, {}).empty());
  env.advance(251ms);
  EXPECT_EQ(store->presence()->watch(0ms, {}), std::vector<WorkerId>{"vanished"});
}

TEST_F(SqliteFile, PresenceThatIsBackInTimeMakesNoSuspect) {
  auto store = open();
  const Identity identity = env.make_identity();
  auto hold = store->presence()->hold(identity);
  enqueue(*store);
  store->claim({identity.id, {offer()}, {}, 1, {}});
  unlink((path() + "-workers/" + identity.id).c_str());
  EXPECT_TRUE(store->presence()->watch(0ms, {}).empty());
  env.advance(200ms);
  hold = store->presence()->hold(identity);
  env.advance(1h);
  EXPECT_TRUE(store->presence()->watch(0ms, {}).empty());
  EXPECT_EQ(store->presence()->prove_gone(identity.id), nullptr);
}

TEST_F(SqliteFile, DeathOfAnotherProcessIsSeenAtOnce) {
  auto store = open();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto own = open_store(url(), real_env());
    const Identity identity = real_env().make_identity();
    const auto hold = own->presence()->hold(identity);
    if (::write(ready[1], identity.id.data(), identity.id.size()) < 0) _exit(1);
    pause();
    _exit(0);
  }
  std::array<char, 256> text{};
  const auto size = read(ready[0], text.data(), text.size());
  ASSERT_GT(size, 0);
  const WorkerId id(text.data(), static_cast<std::size_t>(size));
  PresenceBoard* board = store->presence();
  EXPECT_TRUE(board->watch(0ms, {}).empty());
  EXPECT_EQ(board->prove_gone(id), nullptr);
  auto killing = env.spawn({}, [&] { kill(child, SIGKILL); });
  const auto suspects = board->watch(1h, {});
  EXPECT_EQ(suspects, std::vector{id});
  EXPECT_NE(board->prove_gone(id), nullptr);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace holdfast::testing
