#include "comm/progress_board.hpp"

#include <cstring>

namespace hf {

ProgressBoard::ProgressBoard(Window& window, const RoleMap& roles, WorkerId me)
    : window_(window),
      owner_(roles.worker_ranks[0]),
      me_(me),
      workers_(static_cast<std::uint32_t>(roles.worker_ranks.size())) {}

void ProgressBoard::publish(const WorkerProgress& progress) {
  mine_ = progress;
  window_.put(owner_, PoolLayout::board_offset(me_), &mine_, sizeof mine_);
  window_.flush(owner_);
}

WorkerProgress ProgressBoard::total() const {
  WorkerProgress sum;
  for (std::uint32_t w = 0; w < workers_; ++w) {
    WorkerProgress p;
    std::memcpy(&p, window_.local().data() + PoolLayout::board_offset(WorkerId{w}), sizeof p);
    sum.samples += p.samples;
    sum.steps += p.steps;
    sum.loss_sum += p.loss_sum;
    sum.bytes_pushed += p.bytes_pushed;
    sum.bytes_pulled += p.bytes_pulled;
    sum.rejected_batches += p.rejected_batches;
  }
  return sum;
}

}  // namespace hf
