#pragma once

#include <functional>
#include <memory>
#include <string>

#include "store/store.hpp"

namespace holdfast {

/// Takes the place of the server's clock, so that a test can set it.
using PostgresClock = std::function<Now()>;

/// `postgresql://…`; makes the schema or brings it up to date. Throws RefusedError (usage) for a
/// URL that cannot be read, StoreError when the store cannot be used.
std::unique_ptr<Store> open_postgres_store(const std::string& url, Env&, const PostgresClock& = {});

MigrationReport migrate_postgres_store(const std::string& url, Env&);

}  // namespace holdfast
