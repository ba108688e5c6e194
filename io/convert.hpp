// Text data sets to packed ones, with what the training rows teach: vocabularies and moments.
// Pass 1 (only where a feature needs it) reads the train split and makes statistics.json; pass 2 encodes each
// split that the config has into train.h5, validation.h5, test.h5 by the rules of dataset.hpp.
// Threading: called from one thread; reading and packing overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "io/dataset.hpp"
#include "io/statistics.hpp"

namespace hf {

/// `stage`: "statistics", "train", "validation" or "test"; `rows`: read so far in that stage.
using ConvertProgress = std::function<void(const std::string& stage, std::uint64_t rows)>;

struct ConvertedSplit {
  Split split = Split::train;
  std::string file;
  std::uint64_t rows = 0, bad_rows = 0, bytes = 0;
};

struct ConvertResult {
  std::vector<ConvertedSplit> splits;
  std::string statistics_file;
  std::vector<BadRow> first_bad_rows;  ///< the first ten over all splits
  std::uint64_t rows = 0, bad_rows = 0, bytes = 0;
  double seconds = 0;
};

/// Without a train split the vocabularies and moments of config.data.statistics are kept.
/// The files appear under their names only after every split was converted.
/// Throws: ConfigError when the input is packed already or statistics are needed and there are no training
/// rows; DataError for more than max_bad_rows bad rows; IoError; FormatError.
ConvertResult convert(const Config& config, const std::string& output_dir,
                      const ConvertProgress& progress = {}, bool compress = true);

/// Pass 1 alone: vocabularies by falling count, then text; mean and (population) standard deviation of the
/// values that are there. Malformed rows are left out here and counted by pass 2.
Statistics collect_statistics(const Config& config, const ConvertProgress& progress = {});

}  // namespace hf
