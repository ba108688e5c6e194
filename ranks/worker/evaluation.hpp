// Evaluation and prediction on all workers.
#pragma once

#include <string>

#include "core/metrics.hpp"
#include "io/dataset.hpp"
#include "ranks/worker/session.hpp"

namespace hf {

struct Evaluation {
  MetricsResult metrics;       ///< meaningful on worker 0
  std::uint64_t bad_rows = 0;  ///< over all workers
  double seconds = 0;
};

/// Every worker scores its share of the split. Nothing is learned, no rows are created.
/// Collective over workers. Requires: everything pushed is applied (ProcessGroup::synchronize).
Evaluation evaluate(const Plan& plan, ProcessGroup& group, WorkerModel& model, Split split);

/// Scores of the split, in the order of the rows, as CSV lines "row,probability" (row: 0-based position in the split)
/// with a header, written to `path` by worker 0. Returns the number of rows (on worker 0).
/// Collective over workers. Throws: DataError for any malformed row; IoError.
std::uint64_t predict(const Plan& plan, ProcessGroup& group, WorkerModel& model, Split split,
                      const std::string& path);

}  // namespace hf
