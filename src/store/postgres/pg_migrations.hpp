#pragma once

#include <cstdint>
#include <string>

#include "env/env.hpp"
#include "holdfast/runtime.hpp"
#include "store/postgres/connection.hpp"

namespace holdfast::postgres {

/// The schema version that this build works with.
int newest_schema();
/// Of the store there; 0: none yet. Throws PgError.
int schema_version(Connection&);

/// Every migration's text, in order; `@.` stands for the schema.
std::string schema_migration(int version);

/// Brings the schema up to date, each step in its own transaction under a lock that ends with it;
/// safe with many processes at once, and while workers of the older version go on. Throws
/// StoreError for a schema of something else and for one that is newer than this build.
MigrationReport migrate_schema(Connection&, Env&);

/// A database that was restored counts its transactions anew, and events are ordered by these:
/// raises what their positions begin from above all that are stored.
void settle_positions(Connection&);

}  // namespace holdfast::postgres
