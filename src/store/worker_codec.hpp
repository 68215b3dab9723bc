#pragma once

#include "store/store.hpp"

namespace holdfast {

/// A row of `workers` without its id and time; tolerant of keys that another build did not write.
Json encode(const WorkerRow&);
WorkerRow decode_worker(const Json&);

}  // namespace holdfast
