#pragma once

// How soon a run starts in another process, with default settings. The program starts itself anew
// for that: its `main` hands `worker URL` on to `work`.

#include <functional>
#include <string>

namespace holdfast {

/// A worker process over the store; returns when it was told to stop.
int work(const std::string& url);

/// Picked up by an idle worker. Prints a line.
void measure_pick_up(const std::string& url);
/// Started a second time after its worker was killed with SIGKILL. Prints a line.
void measure_second_start(const std::string& url);
/// Calls `look` while idle worker processes are there.
void with_idle_workers(const std::string& url, int workers, const std::function<void()>& look);
/// One run after another, each awaited.
void run_singly(const std::string& url, int runs);

}  // namespace holdfast
