#pragma once

namespace holdfast::testing {

/// Sets a PostgreSQL schema back to what a build left whose newest step was the second. `@.` stands
/// for the schema.
inline constexpr char kBackToVersion2[] =
    "UPDATE @.meta SET value = '2' WHERE key = 'schema_version'; "
    "ALTER TABLE @.runs SET (fillfactor = 70); DROP TABLE @.circuits; "
    "CREATE OR REPLACE FUNCTION @.enqueue(agent text, request json) RETURNS uuid LANGUAGE sql "
    "AS 'SELECT NULL::uuid'; GRANT EXECUTE ON FUNCTION @.enqueue TO PUBLIC";

}  // namespace holdfast::testing
