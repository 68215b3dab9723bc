#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast {

enum class LogLevel { debug, info, warn, error, off };

/// One structured line on standard error: `time=… level=… msg="…" run=… step=…`. Any thread; lines
/// are whole. Values are quoted where needed and control characters escaped; nothing secret is ever
/// passed here.
void log(LogLevel, std::string_view message,
         std::initializer_list<std::pair<std::string_view, std::string>> fields = {});

void set_log_level(LogLevel);
bool parse_log_level(std::string_view word, LogLevel* level);

}  // namespace holdfast
