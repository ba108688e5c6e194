// How much a table's gather and apply cost above the bare memory traffic: the same rows, ids and arithmetic
// (SGD) once through Table and once through a plain prefetching loop over one flat array whose positions
// are known.
// Threading: runs in the calling thread; allocates both copies of the rows (rows · dim · 8 bytes in all).
#pragma once

#include <cstdint>
#include <vector>

#include "core/types.hpp"
#include "table/memory.hpp"
#include "table/table.hpp"

namespace hf {

struct GatherApplyResult {
  double bare_ns_per_row;   ///< copy a row out, later w -= lr·g
  double table_ns_per_row;  ///< Table::gather, later Table::apply
  double ratio;             ///< median of table / bare over the pairs of runs that followed each other
};

/// Each repeat runs several calls of the bare loop and the same calls of the table (A B A B …). The ids of a
/// call are distinct, Zipf-distributed (exponent 1.05) and scattered over the rows. Requires: repeats ≥ 1,
/// dim ≥ 1, ids_per_call ≤ rows / 2.
GatherApplyResult bench_gather_apply(std::uint64_t rows, std::uint32_t dim, std::uint32_t ids_per_call,
                                     int repeats);

/// The two sides and the ids, for programs that time them in their own way.
class GatherApplyWorkload {
 public:
  GatherApplyWorkload(std::uint64_t rows, std::uint32_t dim, std::uint32_t ids_per_call, std::uint32_t calls);

  std::size_t calls() const noexcept { return ids_.size(); }
  std::uint32_t ids_per_call() const noexcept { return ids_per_call_; }
  /// Rows whose lines are requested ahead in the bare loop; the constructor picks the fastest of 4 … 48.
  std::size_t prefetch_distance() const noexcept { return distance_; }
  void run_bare(std::size_t call);
  void run_table(std::size_t call);
  /// Both sides hold the same weights, bit for bit (after the same calls).
  bool sides_equal() const;

 private:
  void tune();

  std::uint64_t rows_;
  std::uint32_t dim_;
  std::uint32_t ids_per_call_;
  std::size_t distance_ = 16;
  std::vector<std::vector<RowId>> ids_;  // by call
  std::vector<float> grads_;
  std::vector<float> out_;
  Memory flat_;
  Table table_;
};

}  // namespace hf
