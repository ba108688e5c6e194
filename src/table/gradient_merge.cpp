#include "table/gradient_merge.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace hf {

GradientMerge::GradientMerge(std::uint32_t dim) : dim_(dim) { HF_CHECK(dim > 0, "dim ≥ 1"); }

void GradientMerge::add(std::span<const RowId> ids, const float* grads) {
  constexpr std::size_t kAhead = 16;
  const std::size_t n = ids.size();
  for (std::size_t i = 0; i < std::min(kAhead, n); ++i) map_.prefetch(ids[i]);
  for (std::size_t i = 0; i < n; ++i, grads += dim_) {
    if (i + kAhead < n) map_.prefetch(ids[i + kAhead]);
    const std::size_t number = map_.insert(ids[i]);
    if (number == ids_.size()) {
      ids_.push_back(ids[i]);
      grads_.insert(grads_.end(), grads, grads + dim_);
    } else {
      float* sum = grads_.data() + number * dim_;
      for (std::uint32_t j = 0; j < dim_; ++j) sum[j] += grads[j];
    }
  }
}

void GradientMerge::clear() noexcept {
  map_.clear();
  ids_.clear();
  grads_.clear();
}

}  // namespace hf
