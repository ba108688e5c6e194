#include "table/clock_table.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace hf {

ClockTable::ClockTable(std::uint32_t workers, std::uint64_t bound)
    : bound_(bound), clocks_(workers, 0), at_slowest_(workers) {
  HF_CHECK(workers > 0, "at least one worker");
}

void ClockTable::advance(WorkerId worker, Step completed) {
  if (completed > clock(worker)) set(worker, completed);
}

void ClockTable::set(WorkerId worker, Step clock_now) {
  const Step before = clock(worker);
  clocks_[worker.value] = clock_now;
  if (before == slowest_) --at_slowest_;
  if (clock_now < slowest_) {
    slowest_ = clock_now;
    at_slowest_ = 1;
  } else if (clock_now == slowest_) {
    ++at_slowest_;
  } else if (at_slowest_ == 0) {
    slowest_ = *std::min_element(clocks_.begin(), clocks_.end());
    at_slowest_ = static_cast<std::size_t>(std::count(clocks_.begin(), clocks_.end(), slowest_));
  }
}

Step ClockTable::clock(WorkerId worker) const {
  HF_CHECK(worker.value < clocks_.size(), "a worker of this run");
  return clocks_[worker.value];
}

void ClockTable::record_read(Step step) noexcept {
  if (slowest_ != kClockInfinite && step > slowest_) max_lag_ = std::max(max_lag_, step - slowest_);
}

}  // namespace hf
