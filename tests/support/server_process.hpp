#pragma once

// Servers that a test program starts for itself.

#include <sys/types.h>

#include <string>
#include <vector>

namespace holdfast::testing {

/// The command under the user that a server runs as: never root.
std::vector<std::string> as_nobody_special(std::vector<std::string> command);

/// What it says goes to `log`. It dies with the test program.
pid_t launch(const std::vector<std::string>& command, const std::string& log);

/// On loopback, free a moment ago.
int free_port();

}  // namespace holdfast::testing
