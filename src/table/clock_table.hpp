// The clocks of all workers as one server knows them, and the gate of bounded staleness: a pull of step t
// may be answered when the slowest worker has completed step t - bound.
// Source: Ho et al.: More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server (NIPS
// 2013), §3.
// Invariants: advance never moves a clock backwards; slowest() is the minimum of all clocks, infinite ones
// included (so it is infinite only where every worker's is).
// Cost: constant, but for a scan of the workers whenever the last of the slowest ones moves on.
// Threading: not thread-safe; one service thread owns it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace hf {

class ClockTable {
 public:
  /// All clocks start at 0. bound: steps, or kStalenessInfinite.
  ClockTable(std::uint32_t workers, std::uint64_t bound);

  /// The worker has completed this many steps. An older or repeated report changes nothing, and neither does
  /// any report of a worker whose clock is infinite.
  void advance(WorkerId worker, Step completed);
  /// Sets a clock to any value; kClockInfinite = the worker has no more data for now and holds nobody back.
  void set(WorkerId worker, Step clock);

  Step clock(WorkerId worker) const;
  Step slowest() const noexcept { return slowest_; }
  /// slowest() ≥ step_of_pull - bound.
  bool may_read(Step step_of_pull) const noexcept {
    return bound_ == kStalenessInfinite || step_of_pull <= bound_ || slowest_ >= step_of_pull - bound_;
  }

  /// A pull of this step is answered now: its lag is step - slowest(), 0 where that is ahead or infinite.
  void record_read(Step step) noexcept;
  std::uint64_t max_observed_lag() const noexcept { return max_lag_; }

 private:
  std::uint64_t bound_;
  std::vector<Step> clocks_;
  Step slowest_ = 0;
  std::size_t at_slowest_;  // workers whose clock is slowest_
  std::uint64_t max_lag_ = 0;
};

}  // namespace hf
