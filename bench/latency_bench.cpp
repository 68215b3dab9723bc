// How soon a run starts in another process over SQLite.
//
//   latency_bench            measures; it starts itself as `latency_bench worker URL`

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "latency.hpp"

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "worker") return holdfast::work(arguments[2]);
  const auto folder =
      std::filesystem::temp_directory_path() / fmt::format("holdfast-latency-{}", getpid());
  std::filesystem::create_directories(folder);
  const std::string url = "sqlite:" + (folder / "runs.db").string();
  holdfast::measure_pick_up(url);
  holdfast::measure_second_start(url);
  std::filesystem::remove_all(folder);
  return 0;
}
