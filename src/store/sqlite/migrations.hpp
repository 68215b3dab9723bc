#pragma once

#include "holdfast/runtime.hpp"
#include "store/sqlite/db.hpp"

namespace holdfast::sqlite {

/// Marks a file as ours in its header (`HOLD`).
constexpr std::int64_t kApplicationId = 0x484F4C44;

/// The schema version that this build works with.
int newest_version();

/// What the file is, read without changing it. Throws StoreError for a database of something else
/// and for one that is newer than this build. The version: 0 for an empty one.
int check_version(Connection&);

/// Brings the schema up to date, each step in its own transaction. Under the writers' lock.
MigrationReport migrate_schema(Connection&);

/// Every migration's text, in order; for the check that none is edited after it landed.
std::string migration_text(int version);

}  // namespace holdfast::sqlite
