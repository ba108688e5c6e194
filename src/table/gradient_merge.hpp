// The sum of several pushes of one synchronous step, row by row, so that the step is applied once and its
// result does not depend on the order of arrival: the caller adds the pushes in worker order. Invariants:
// grads() has one row for each of ids(); sums are formed in the order of the calls, and inside a call in
// the order of its ids.
// Threading: not thread-safe; memory is reused from step to step.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "table/id_map.hpp"

namespace hf {

class GradientMerge {
 public:
  explicit GradientMerge(std::uint32_t dim);

  /// Shape of grads: [ids, dim]. An id may occur several times.
  void add(std::span<const RowId> ids, const float* grads);

  /// In the order of their first occurrence.
  std::span<const RowId> ids() const noexcept { return ids_; }
  /// Shape: [ids, dim]. Valid until the next add.
  const float* grads() const noexcept { return grads_.data(); }

  std::uint32_t dim() const noexcept { return dim_; }
  void clear() noexcept;

 private:
  std::uint32_t dim_;
  IdMap map_;
  std::vector<RowId> ids_;
  std::vector<float> grads_;
};

}  // namespace hf
