// The latest progress of every worker, put one-sided into worker 0's pool: for display only.
// Threading: each worker's thread.
#pragma once

#include <cstdint>

#include "comm/pool_layout.hpp"
#include "comm/window.hpp"

namespace hf {

struct WorkerProgress {
  std::uint64_t samples = 0;
  std::uint64_t steps = 0;
  double loss_sum = 0;
  std::uint64_t bytes_pushed = 0;
  std::uint64_t bytes_pulled = 0;
  std::uint64_t rejected_batches = 0;
  std::uint64_t reserved[2] = {};
};
static_assert(sizeof(WorkerProgress) == 64);

class ProgressBoard {
 public:
  ProgressBoard(Window& window, const RoleMap& roles, WorkerId me);
  /// Cost: one put of 64 bytes.
  void publish(const WorkerProgress& progress);
  /// Sum over workers. Requires: worker 0.
  WorkerProgress total() const;

 private:
  Window& window_;
  Rank owner_;
  WorkerId me_;
  std::uint32_t workers_;
  WorkerProgress mine_;
};

}  // namespace hf
