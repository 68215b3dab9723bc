#pragma once

#include <string>

namespace holdfast::sqlite {

/// The absolute path, links followed, so that all processes name the files beside it alike. Throws
/// StoreError where there is no such folder.
std::string resolve_path(const std::string& path);

/// Looks at the file before SQLite does, without changing a byte: throws StoreError for a folder,
/// for what may not be read and written, for what is not a database, and for a log without its
/// database. True when a database is there; false when it is still to be made.
bool check_before_opening(const std::string& path);

/// Throws StoreError for a database that was cut off. Under the writers' lock.
void check_whole(const std::string& path);

/// Makes the empty file, readable by its owner alone.
void create_file(const std::string& path);

/// The name of the network file system that the path lies on; empty for a local one.
std::string network_file_system(const std::string& path);

}  // namespace holdfast::sqlite
