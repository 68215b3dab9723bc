#pragma once

#include <memory>

#include "store/store.hpp"

namespace holdfast {

/// Everything in this process's memory, gone with it: tests, the simulator, `memory:`. The model
/// that other kinds of store are compared with.
std::unique_ptr<Store> open_memory_store(Env&);

}  // namespace holdfast
