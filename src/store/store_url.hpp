#pragma once

#include <string>

namespace holdfast {

bool is_memory_url(const std::string& url);

/// The path behind `sqlite:`. Throws RefusedError (usage) for what is no store's URL.
std::string get_sqlite_path(const std::string& url);

}  // namespace holdfast
