#include "comm/pull_queue.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace hf {

std::pair<PullHandle, Pull&> PullQueue::add(std::size_t servers) {
  std::shared_ptr<Pull> pull;
  if (free_.empty()) {
    pull = std::make_shared<Pull>();
  } else {
    pull = std::move(free_.back());
    free_.pop_back();
  }
  pull->error.reset();
  pull->dropped.store(false, std::memory_order_relaxed);
  pull->next.assign(servers, 0);
  pull->end.assign(servers, 0);
  pull->remaining = 0;
  open_.push_back(pull);
  return {PullHandle(pull), *pull};
}

void PullQueue::deliver(Pull& pull, std::uint32_t begin, std::uint32_t end, const RowBlockView& rows) {
  if (rows.size() != end - begin) throw MpiError("an answer with another number of rows than was asked for");
  pull.remaining -= rows.size();
  if (pull.dropped.load(std::memory_order_acquire)) return;
  if (pull.positions.empty()) {
    rows.read_rows(pull.out + std::size_t{begin} * pull.dim);
  } else {
    for (std::uint32_t i = begin; i < end; ++i)
      rows.read_row(i - begin, pull.out + std::size_t{pull.positions[i]} * pull.dim);
  }
}

void PullQueue::fail(Pull& pull, std::uint32_t begin, std::uint32_t end, ServerFailure error) {
  pull.error = std::move(error);
  pull.remaining -= end - begin;
}

const Pull& PullQueue::at(const PullHandle& handle) const {
  HF_CHECK(handle && std::find(open_.begin(), open_.end(), handle.pull_) != open_.end(),
           "a handle of a pull that this client has on its way");
  return *handle.pull_;
}

void PullQueue::complete(PullHandle& handle) {
  HF_CHECK(at(handle).remaining == 0, "complete() before the last row");
  const std::shared_ptr<Pull> pull = std::move(handle.pull_);
  std::erase(open_, pull);
  pull->keep_alive.reset();
  free_.push_back(pull);
  if (pull->error) std::exchange(pull->error, {})->raise();
}

void PullQueue::reap() {
  std::erase_if(open_, [&](const std::shared_ptr<Pull>& pull) {
    if (!pull->dropped.load(std::memory_order_acquire)) return false;
    for (std::size_t s = 0; s < pull->next.size(); ++s) {
      pull->remaining -= pull->end[s] - pull->next[s];
      pull->next[s] = pull->end[s];
    }
    pull->keep_alive.reset();  // not written any more
    if (pull->remaining > 0) return false;
    free_.push_back(pull);
    return true;
  });
}

}  // namespace hf
