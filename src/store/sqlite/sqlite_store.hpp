#pragma once

#include <memory>
#include <string>

#include "store/store.hpp"

namespace holdfast {

/// One file, shared by any number of processes of this machine. Creates it where there is none,
/// brings its schema up to date, and refuses (StoreError) what it cannot use, leaving its bytes as
/// they are.
std::unique_ptr<Store> open_sqlite_store(const std::string& path, Env&);

MigrationReport migrate_sqlite_store(const std::string& path, Env&);

}  // namespace holdfast
