// Holdfast inside an application that has threads of its own: request threads enqueue, a worker in
// the same process executes, another thread of the application follows the events.
//
// A request that is sent twice carries the same idempotency key, and is one run.

#include <atomic>
#include <filesystem>
#include <holdfast/runtime.hpp>
#include <iostream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::Json;

namespace {

constexpr int kRequestThreads = 4;
constexpr int kOrdersEach = 5;

/// What a thread of a web server would do for a request. The client was impatient: it asks twice.
void serve_requests(holdfast::Runtime& runtime, int thread) {
  for (int i = 0; i < kOrdersEach; ++i) {
    holdfast::RunRequest request;
    request.agent = "ship";
    request.input = {{"order", thread * kOrdersEach + i}};
    request.idempotency_key = "order-" + std::to_string(thread * kOrdersEach + i);
    request.labels = {{"thread", std::to_string(thread)}};
    const auto first = runtime.enqueue(request);
    const auto again = runtime.enqueue(request);
    if (first.id != again.id) std::terminate();
  }
}

/// Every run's events in the order in which they were committed; observers only read.
int count_completions(holdfast::Runtime& runtime, int expected) {
  int completed = 0;
  std::int64_t cursor = 0;
  for (int looks = 0; completed < expected && looks < 1000; ++looks) {
    for (const auto& event : runtime.all_events(cursor, 100)) {
      if (event.kind.is(holdfast::EventKind::completed)) ++completed;
    }
    if (completed < expected) std::this_thread::sleep_for(20ms);
  }
  return completed;
}

}  // namespace

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "holdfast-embedding";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);

  holdfast::RuntimeOptions options;
  options.store_url = "sqlite:" + (folder / "runs.db").string();
  auto runtime = holdfast::Runtime::open(options);

  std::atomic<int> shipped = 0;
  runtime->register_task("ship", [&](holdfast::RunContext& context) -> Json {
    return context.step("ship", [&]() -> Json {
      ++shipped;
      return {{"shipped", context.run().input.at("order")}};
    });
  });

  holdfast::WorkerSettings settings;
  settings.concurrency = 3;
  settings.name = "in-process";
  auto worker = runtime->start_worker(settings);

  constexpr int kOrders = kRequestThreads * kOrdersEach;
  int completed = 0;
  {
    std::jthread observer([&] { completed = count_completions(*runtime, kOrders); });
    std::vector<std::jthread> requests;
    for (int thread = 0; thread < kRequestThreads; ++thread) {
      requests.emplace_back([&runtime, thread] { serve_requests(*runtime, thread); });
    }
  }

  // The application shuts down: the worker claims no more and lets its steps reach their boundary.
  worker->stop();
  worker->join();
  worker.reset();

  std::cout << "completed: " << completed << '\n';
  std::cout << "shipped: " << shipped << '\n';
  std::cout << "stats: " << runtime->stats().at("by_status").dump() << '\n';

  runtime.reset();
  std::filesystem::remove_all(folder);
  return completed == kOrders && shipped == kOrders ? 0 : 1;
}
