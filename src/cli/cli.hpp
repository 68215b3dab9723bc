#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/args.hpp"
#include "cli/host.hpp"
#include "cli/output.hpp"

namespace holdfast {

using MakeHost = std::function<std::unique_ptr<Host>(const GlobalOptions&)>;

/// Understands and executes one command line (without the program's name); the exit code. Catches
/// everything: what can be mended is one error line, anything else is told as a bug.
int run_command_line(const std::vector<std::string>& words, const MakeHost&, Output&);

}  // namespace holdfast
