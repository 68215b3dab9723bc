#include "crash/harness.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "support/postgres_server.hpp"

namespace holdfast::crash {

namespace {

// Appends to the ledger first: that is the side effect. Then waits while it is held, and does what
// the test put beside it.
constexpr const char* kTool = R"(#!/bin/sh
arguments=$(cat)
echo "$1 start $HOLDFAST_IDEMPOTENCY_KEY $$" >>"$2/ledger"
while [ -e "$2/hold.$1" ]; do sleep 0.02; done
if [ -e "$2/do.$1" ]; then . "$2/do.$1"; fi
echo "$1 end $HOLDFAST_IDEMPOTENCY_KEY $$" >>"$2/ledger"
[ -n "$printed" ] || echo '{"ok":true}'
)";

Json call(const std::string& tool, Json arguments = Json::object()) {
  return {{"tool_calls", Json::array({{{"name", tool}, {"arguments", std::move(arguments)}}})}};
}

Json say(const std::string& text) { return {{"reply", text}}; }

std::string configuration(const Settings& settings, const fs::path& folder,
                          const std::string& store_url) {
  std::ostringstream text;
  text << "[store]\nurl = \"" << store_url << "\"\n"
       << "[lease]\nduration = \"" << settings.lease << "\"\nheartbeat = \"" << settings.heartbeat
       << "\"\npresence_interval = \"" << settings.presence << "\"\n"
       << "[retry]\nmax_requeues = " << settings.max_requeues << "\nbackoff_base = \""
       << settings.backoff << "\"\nbackoff_cap = \"1s\"\n"
       << "[circuit]\nthreshold = " << settings.circuit_threshold << "\nopen = \""
       << settings.circuit_open << "\"\nquota_open = \"" << settings.quota_open << "\"\n"
       << "[reaper]\ninterval = \"" << settings.reaper << "\"\n";
  for (const char* agent : {"errand", "payer", "reader", "plain", "gated", "worded", "asker"}) {
    text << "[providers." << agent << "]\nkind = \"scripted\"\nscript = \"" << agent << ".json\"\n"
         << "[agents." << agent << "]\nmodels = [\"" << agent << "/m\"]\n"
         << "tools = [\"lookup\", \"label\", \"pay\", \"send\", \"charge\"]\n";
  }
  const auto tool = [&](const std::string& name, const std::string& more) {
    text << "[tools." << name << "]\nkind = \"command\"\ncommand = [\"./tool.sh\", \"" << name
         << "\", \"" << folder.string() << "\"]\n"
         << more << "\n";
  };
  tool("lookup", "effect = \"read\"");
  tool("label", "effect = \"idempotent_write\"");
  tool("pay", "effect = \"non_idempotent_write\"");
  tool("send", "effect = \"non_idempotent_write\"\napproval = true");
  tool("charge", "effect = \"non_idempotent_write\"\nprobe = [\"./probe.sh\"]");
  text << settings.more;
  return text.str();
}

std::string temporary_folder() {
  const char* base = std::getenv("TMPDIR");
  std::string path = std::string(base != nullptr ? base : "/tmp") + "/holdfast-crash-XXXXXX";
  if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp failed at " + path);
  return path;
}

std::string beside_this_program(const std::string& name) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  return (self.parent_path().parent_path() / name).string();
}

}  // namespace

std::string binary() { return beside_this_program("holdfast"); }
std::string crash_app() { return beside_this_program("crash_app"); }

std::vector<std::string> failpoints() {
  static const std::regex kName(R"re(HOLDFAST_FAILPOINT\("([a-z_.]+)"\))re");
  std::set<std::string> names;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(HOLDFAST_SOURCE_DIR) / "src")) {
    if (entry.path().extension() != ".cpp") continue;
    if (entry.path().string().find("_test.cpp") != std::string::npos) continue;
    const std::string text = read_file(entry.path());
    for (std::sregex_iterator it(text.begin(), text.end(), kName), end; it != end; ++it) {
      names.insert((*it)[1]);
    }
  }
  return {names.begin(), names.end()};
}

Site::Site(const Settings& settings)
    : folder_(temporary_folder()), schema_(testing::PostgresServer::fresh_schema()) {
  if (is_postgres()) {
    const std::string url = testing::PostgresServer::shared().url(schema_);
    use_server(url, url);
  } else {
    move_store(folder_);
  }
  policy.backoff_base = Duration(20);
  policy.backoff_cap = Duration(100);
  write("tool.sh", kTool, true);
  write("probe.sh", "#!/bin/sh\nexit 3\n", true);
  script("errand", {call("lookup", {{"id", "c-1"}}), call("label", {{"tag", "vip"}}),
                    call("pay", {{"amount", 12}}), say("paid")});
  script("payer", {call("pay"), say("paid")});
  script("reader", {call("lookup"), say("found")});
  script("plain", Json::array({say("hello")}));
  script("gated", {call("lookup"), call("send"), say("sent")});
  script("worded", Json::array({say("hello")}));
  script("asker", {call("charge"), say("charged")});
  configure(settings);
}

Site::~Site() {
  runtime_.reset();
  EXPECT_TRUE(is_quiet()) << "a process of " << folder_ << " is left";
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void Site::configure(const Settings& settings) {
  write("holdfast.toml", configuration(settings, folder_, store_url()));
}

void Site::write(const std::string& name, const std::string& text, bool executable) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
  if (executable) {
    fs::permissions(folder_ / name, fs::perms::owner_all | fs::perms::group_read |
                                        fs::perms::group_exec | fs::perms::others_read |
                                        fs::perms::others_exec);
  }
}

std::string Site::read(const std::string& name) const { return read_file(folder_ / name); }

void Site::script(const std::string& agent, const Json& turns) const {
  write(agent + ".json", turns.dump(1));
}

Command Site::command(std::vector<std::string> args, std::map<std::string, std::string> env) const {
  Command made;
  made.args = {binary(), "--config", (folder_ / "holdfast.toml").string(), "--store", store_url()};
  made.args.insert(made.args.end(), args.begin(), args.end());
  made.env = std::move(env);
  made.folder = folder_.string();
  const std::string number = std::to_string(++results_);
  made.output = (folder_ / ("out." + number)).string();
  made.errors = (folder_ / ("err." + number)).string();
  return made;
}

Result Site::run(const Command& made, milliseconds limit) const {
  Process process(made);
  const auto status = process.wait(limit);
  if (!status) process.kill();
  return {status.value_or(-1), read_file(made.output), read_file(made.errors)};
}

Result Site::cli(std::vector<std::string> args, std::map<std::string, std::string> env,
                 milliseconds limit) const {
  return run(command(std::move(args), std::move(env)), limit);
}

Process Site::worker(std::vector<std::string> args, std::map<std::string, std::string> env) {
  args.insert(args.begin(), "worker");
  const Command made = command(std::move(args), std::move(env));
  Process process(made);
  logs_[process.pid()] = made.errors;
  return process;
}

Process Site::app(std::vector<std::string> args, std::map<std::string, std::string> env) {
  Command made = command({}, std::move(env));
  made.args = {crash_app(), store_url(), folder_.string()};
  made.args.insert(made.args.end(), args.begin(), args.end());
  Process process(made);
  logs_[process.pid()] = made.errors;
  return process;
}

bool Site::is_up(const Process& process, milliseconds limit) {
  return eventually(limit, [&] {
    const Json workers = runtime().workers();
    for (const Json& worker : workers) {
      if (worker.at("pid") == process.pid()) return true;
    }
    return false;
  });
}

std::string Site::log_of(const Process& process) const {
  const auto found = logs_.find(process.pid());
  return found == logs_.end() ? "" : read_file(found->second);
}

std::string Site::enqueue(const std::string& agent, std::vector<std::string> more) const {
  std::vector<std::string> args = {"enqueue", agent, "--input", "go"};
  args.insert(args.end(), more.begin(), more.end());
  const Result result = cli(std::move(args));
  EXPECT_EQ(result.code, 0) << result.err;
  return result.out.substr(0, result.out.find('\n'));
}

std::vector<std::string> Site::enqueue_many(const std::string& task, int count, const Json& input,
                                            std::optional<int> max_requeues) {
  std::vector<RunRequest> requests(static_cast<std::size_t>(count));
  for (RunRequest& request : requests) {
    request.agent = task;
    request.input = input;
    request.max_requeues = max_requeues;
  }
  std::vector<std::string> ids;
  for (const Run& run : runtime().enqueue(requests)) ids.push_back(run.id);
  return ids;
}

Runtime& Site::runtime() {
  if (!runtime_) {
    RuntimeOptions options;
    options.store_url = own_url_;
    options.policy = policy;
    options.heartbeat = policy.lease / 4;
    runtime_ = Runtime::open(std::move(options));
    for (const char* task : {"count", "abort", "faults", "burn"}) {
      runtime_->register_task(task, [](RunContext&) { return Json(); });
    }
  }
  return *runtime_;
}

std::string Site::status(const std::string& run) { return runtime().get(run).status.text(); }
Json Site::show(const std::string& run) { return to_json(runtime().get(run)); }
std::vector<Event> Site::events(const std::string& run) { return runtime().events(run, 0, 0); }

int Site::count_events(const std::string& run, EventKind kind) {
  int count = 0;
  for (const Event& event : events(run)) count += event.kind.is(kind) ? 1 : 0;
  return count;
}

void Site::freeze(pid_t process) const {
  const auto is_write_lock_free = [&] {
    const int lock = open((database().string() + "-lock").c_str(), O_RDWR | O_CLOEXEC);
    const bool is_free = lock < 0 || flock(lock, LOCK_EX | LOCK_NB) == 0;
    if (lock >= 0) close(lock);
    return is_free;
  };
  while (true) {
    ::kill(process, SIGSTOP);
    eventually(seconds(10), [&] { return is_standing_still(process); });
    // Others have it for a moment only.
    if (is_postgres() || eventually(seconds(1), is_write_lock_free)) return;
    ::kill(process, SIGCONT);
    let_pass(milliseconds(5));
  }
}

bool Site::reaches(const std::string& run, const std::string& wanted, milliseconds limit) {
  const bool reached = eventually(limit, [&] { return status(run) == wanted; });
  if (!reached) ADD_FAILURE() << run << " is not " << wanted << ": " << show(run).dump(1);
  return reached;
}

std::vector<LedgerLine> Site::ledger() const {
  std::vector<LedgerLine> lines;
  std::istringstream text(read("ledger"));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    LedgerLine entry;
    if (words >> entry.tool >> entry.phase >> entry.key >> entry.pid) lines.push_back(entry);
  }
  return lines;
}

int Site::times(const std::string& tool, const std::string& phase) const {
  int count = 0;
  for (const LedgerLine& line : ledger()) count += line.tool == tool && line.phase == phase ? 1 : 0;
  return count;
}

bool Site::has_started(const std::string& tool, int wanted, milliseconds limit) const {
  const bool reached = eventually(limit, [&] { return times(tool) >= wanted; });
  if (!reached) ADD_FAILURE() << tool << " did not start " << wanted << " times";
  return reached;
}

void Site::hold(const std::string& tool) const { write("hold." + tool, ""); }
void Site::let_go(const std::string& tool) const { fs::remove(folder_ / ("hold." + tool)); }

bool Site::is_quiet(milliseconds limit) const {
  const auto nobody = [&] {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (name == std::to_string(getpid())) continue;
      if (read_file(entry.path() / "cmdline").find(folder_.string()) != std::string::npos)
        return false;
    }
    return true;
  };
  return eventually(limit, nobody);
}

}  // namespace holdfast::crash
