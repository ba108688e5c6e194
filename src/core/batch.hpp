// One batch of encoded examples: what io produces and a worker trains on. No strings, no torch.
// Invariants: labels.size() == rows (or 0 where the data set has no labels);
//             dense.size() == rows * num_dense, row-major; every column of `sparse` describes `rows` rows.
// Threading: a plain value, moved from the reader's thread to the worker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace hf {

/// The ids of one categorical feature for the rows of a batch, as bags in compressed-row form.
struct SparseColumn {
  std::vector<RowId> ids;
  /// rows + 1 offsets into ids; empty means exactly one id per row (ids.size() == rows).
  std::vector<std::uint32_t> offsets;
  /// One weight per id (libsvm values), or empty: every weight is 1.
  std::vector<float> weights;

  bool one_per_row() const noexcept { return offsets.empty(); }
  std::size_t bag_begin(std::size_t row) const noexcept { return offsets.empty() ? row : offsets[row]; }
  std::size_t bag_end(std::size_t row) const noexcept { return offsets.empty() ? row + 1 : offsets[row + 1]; }
  void clear() noexcept {
    ids.clear();
    offsets.clear();
    weights.clear();
  }
};

struct Batch {
  std::size_t rows = 0;
  std::size_t num_dense = 0;
  /// Index of the batch's first row in the epoch's row stream (before it is dealt to workers).
  std::uint64_t first_row = 0;
  std::vector<float> labels;         ///< 0 or 1
  std::vector<float> dense;          ///< Shape: [rows, num_dense]
  std::vector<SparseColumn> sparse;  ///< one per categorical feature, in the schema's order

  void clear() noexcept {
    rows = 0;
    first_row = 0;
    labels.clear();
    dense.clear();
    for (auto& c : sparse) c.clear();
  }
};

}  // namespace hf
