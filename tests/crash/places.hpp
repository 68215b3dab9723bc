#pragma once

// The failpoints that the sources name, by who passes them. Each is in one list here, so that none
// is left without a process that is killed there.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace holdfast::crash {

/// Does the name, or what follows `store.` in it, begin with one of the words?
bool names_one_of(const std::string& place, const std::vector<std::string>& words);

/// Inside a transaction. On SQLite a process frozen there holds up every other writer, as stated.
bool is_in_the_lock(const std::string& place);
/// Passed while a run is enqueued and executed.
bool is_of_a_worker(const std::string& place);
/// Of these, those that a worker passes while it holds a run.
bool is_of_a_segment(const std::string& place);
/// Passed by operators' commands and by reapers.
bool is_of_an_operator(const std::string& place);
/// Passed by commands that need a store in a state of its own.
bool is_of_a_command(const std::string& place);
/// Cannot be passed on the store of this program.
bool is_out_of_reach(const std::string& place);

/// Those that fit, are within reach, and are chosen: on a server one of each kind, of a sweep the
/// store's; in the long run all of them.
std::vector<std::string> places(const std::function<bool(const std::string&)>& fits);

std::string test_name(const ::testing::TestParamInfo<std::string>& info);

}  // namespace holdfast::crash
