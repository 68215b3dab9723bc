// A program outside the project: does what is installed suffice to build and run a task?

#include <holdfast/runtime.hpp>
#include <iostream>

int main() {
  holdfast::RuntimeOptions options;
  options.store_url = "memory:";
  auto runtime = holdfast::Runtime::open(options);
  runtime->register_task("double", [](holdfast::RunContext& context) -> holdfast::Json {
    return context.step("multiply",
                        [&]() -> holdfast::Json { return context.run().input.get<int>() * 2; });
  });

  holdfast::RunRequest request;
  request.agent = "double";
  request.input = 21;
  const auto result = runtime->run_inline(request, {}, {});
  std::cout << holdfast::version() << ' ' << result.run.status.text() << ' '
            << result.run.answer.value_or(nullptr).dump() << '\n';
  return result.outcome == holdfast::Outcome::completed ? 0 : 1;
}
