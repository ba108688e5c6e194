// Pooled embedding rows of a batch from the table of its unique rows, with a gradient.
// Invariants: forward and backward visit ids in a fixed order (blocks of rows, then columns, then rows), so
// that the
//             sum of the gradients of one row is bit-identical from run to run; no atomics.
// Threading: one thread; the caller's.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/config.hpp"

namespace hf {

/// What one lookup of a batch reads. All arrays are the caller's.
struct GatherColumn {
  const std::uint32_t* index = nullptr;  ///< per id: its row in `rows`
  const std::uint32_t* offsets =
      nullptr;                     ///< batch + 1 offsets into index; nullptr: one id per row of the batch
  const float* weights = nullptr;  ///< one per id; nullptr: all 1
  Pooling pooling = Pooling::sum;
};

/// out[b][c] = Σ weight · rows[index] over the bag of row b in column c; `mean` divides by the number of ids
/// of the bag (not by the sum of the weights). An empty bag gives zeros. The weights get no gradient. Shape:
/// rows [U, dim] float or double, contiguous; returns [batch, columns.size(), dim]. Requires: the arrays of
/// `columns` live and stay unchanged until the backward pass is over; either the caller sees to it or passes
/// an owner of theirs as `keep_alive`. The GatherColumn structs themselves are copied. Cost: one read of each
/// row and one write of the result; backward one read of the gradient, one zeroing of a [U, dim] tensor and a
/// read-modify-write per id. First derivatives only. `on_backward` is called at each backward pass that reaches
/// `rows`, before their gradient is there; it lives as long as the graph. Throws: CheckFailed for an index outside
/// [0, U) and for offsets that fall.
torch::Tensor embedding_gather(const torch::Tensor& rows, std::span<const GatherColumn> columns,
                               std::int64_t batch, std::shared_ptr<const void> keep_alive = nullptr,
                               std::function<void()> on_backward = nullptr);

}  // namespace hf
