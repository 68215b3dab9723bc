#pragma once

#include "store/store.hpp"

namespace holdfast {

/// A row of `workers` without its id and time. What is missing, or of another type, keeps the
/// default: one damaged row must not hide the others.
Json encode(const WorkerRow&);
WorkerRow decode_worker(const Json&);

}  // namespace holdfast
