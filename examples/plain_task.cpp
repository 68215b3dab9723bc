// A task of three steps that fails in the middle and is retried.
//
// The first step is recorded before the second one fails, so the retry goes on behind it: the
// invoice is fetched once, and the payment is tried again with the same idempotency key.

#include <filesystem>
#include <holdfast/runtime.hpp>
#include <iostream>

using namespace std::chrono_literals;
using holdfast::Json;

namespace {

/// What the steps do to the world, counted from outside.
struct World {
  int fetches = 0;
  int payment_attempts = 0;
};

/// A handler runs from the top in every segment; `step` returns what is recorded, or does the work.
Json pay_invoice(World& world, holdfast::RunContext& context) {
  const Json invoice = context.step("fetch", [&]() -> Json {
    ++world.fetches;
    return {{"number", context.run().input.at("invoice")}, {"amount", 120}};
  });

  holdfast::StepOptions payment;
  payment.effect = holdfast::Effect::idempotent_write;  // repeated with the same key: paid once
  payment.arguments = invoice;
  const Json receipt = context.step("pay", payment, [&](const holdfast::StepContext& step) {
    if (++world.payment_attempts == 1) {
      holdfast::Failure failure;
      failure.cls = holdfast::FailureClass::overloaded;  // a class that is retried
      failure.message = "the bank is busy";
      throw holdfast::FailureError(failure);
    }
    std::cout << "paying with key " << (step.idempotency_key.empty() ? "none" : "present") << '\n';
    return holdfast::StepResult{{{"paid", invoice.at("amount")}}, std::nullopt};
  });

  return context.step("notify", [&]() -> Json { return {{"receipt", receipt}}; });
}

}  // namespace

int main() {
  const auto folder = std::filesystem::temp_directory_path() / "holdfast-plain-task";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);

  holdfast::RuntimeOptions options;
  options.store_url = "sqlite:" + (folder / "runs.db").string();
  options.policy.backoff_base = 100ms;  // a demonstration need not wait half a minute

  World world;
  auto runtime = holdfast::Runtime::open(options);
  runtime->register_task(
      "pay_invoice", [&](holdfast::RunContext& context) { return pay_invoice(world, context); });

  holdfast::RunRequest request;
  request.agent = "pay_invoice";
  request.input = {{"invoice", "2026-17"}};
  const auto stored = runtime->enqueue(request);

  {
    // A worker of this very process; `holdfast worker` is the same as a program of its own.
    const auto worker = runtime->start_worker({});
    runtime->wait(stored.id, 20s, {});
    worker->stop();
    worker->join();
  }

  const auto run = runtime->get(stored.id);
  for (const auto& event : runtime->events(run.id, 0, 0)) {
    std::cout << event.sequence << ' ' << event.kind.text() << '\n';
  }
  std::cout << "status: " << run.status.text() << '\n';
  std::cout << "answer: " << run.answer.value_or(nullptr).dump() << '\n';
  std::cout << "fetched " << world.fetches << " time, tried to pay " << world.payment_attempts
            << " times\n";

  runtime.reset();
  std::filesystem::remove_all(folder);
  return run.status.is(holdfast::Status::completed) ? 0 : 1;
}
