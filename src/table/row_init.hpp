// The weights a fresh row starts with: a pure function of (seed, table name, id, column).
//
// key(row) = mix64(mix64(seed, XXH64(name)), id); word j = mix64(key + j). Two columns share one word:
// column 2j takes its bits 40 … 63, column 2j + 1 its bits 16 … 39, each a uniform number of 24 bits.
//   uniform  (2u - 1) · scale
//   normal   Box–Muller on the two numbers of a word: column 2j the cosine, column 2j + 1 the sine
// The last zero_tail columns are 0.
// Threading: immutable after construction.
#pragma once

#include <cstdint>

#include "core/table_spec.hpp"
#include "core/types.hpp"

namespace hf {

/// The part of the function that is the same for all rows, computed once.
class RowInit {
 public:
  explicit RowInit(const TableSpec& spec);
  /// Shape of out: [dim].
  void fill(RowId id, float* out) const noexcept;

 private:
  InitKind kind_;
  std::uint32_t dim_;
  std::uint32_t filled_;  // columns that are not of the zero tail
  float scale_;
  std::uint64_t key_;
};

}  // namespace hf
