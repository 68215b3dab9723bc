#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/runtime.hpp"
#include "store/sqlite/db.hpp"

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

/// The `store_id` that stands in the file alone, without its log; none where it cannot be read from
/// it. Under the writers' lock.
std::optional<std::string> store_id_of_file(const std::string& path);

/// Throws StoreError where the log beside the file is another store's: `db` sees both.
void check_log_is_own(Connection& db, const std::optional<std::string>& id_of_file);

/// Makes the empty file, readable by its owner alone.
void create_file(const std::string& path);
/// Takes back what `create_file` made, with what lies beside it. Under the lock of writers.
void remove_unmade_file(const std::string& path);

/// The name of a network file system by its type (statfs, f_type); empty for a local one.
std::string network_file_system(std::uint32_t type);

/// The type of the file system that the path lies on; 0 where it cannot be told.
std::uint32_t file_system_of(const std::string& path);

/// What to say of a store on a file system of this type: nothing for a local one.
std::optional<Finding> check_file_system(const std::string& path, std::uint32_t type);

}  // namespace holdfast::sqlite
