// Which files feed a split and which of their rows belong to it.
// Threading: pure functions and plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "io/dataset.hpp"

namespace hf {

struct SplitInputs {
  std::vector<std::string> names;  ///< as in the config: files, directories, globs
  bool filter = false;             ///< true: only some rows, by ratio_split or column_split; false: all rows
};

/// A file list given for validation or test is used whole, whatever `split.by` says; otherwise `train` is
/// filtered.
SplitInputs split_inputs(const DataConfig& data, Split split);

/// split.by = ratio: the split of a row. `row` counts the rows of the train files from 0, malformed ones
/// included.
Split ratio_split(const SplitConfig& split, std::uint64_t row) noexcept;

/// split.by = column: the split of a row whose column has this text (kMissing and texts without a derived
/// value: train).
/// With derive "day" a value of the config is a day of the month ("30") or a date YYMMDD ("141030").
Split column_split(const SplitConfig& split, std::string_view text);

}  // namespace hf
