// Encoded batches straight from text files: the dealing rules of dataset.hpp over a RowReader.
//
// Every worker reads every line, but takes apart only those of its own blocks (and, where rows are split by a
// column, finds that column in all of them).
// Threading: used by one thread; see prefetch.hpp for reading ahead.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/dataset.hpp"
#include "io/statistics.hpp"

namespace hf {

/// `files` are those of the split; `filter`: only the rows that belong to it (see split.hpp).
/// Throws: ConfigError; IoError and FormatError when a file is opened, on first use.
std::unique_ptr<BatchStream> open_text_stream(const Config& config, const Schema& schema,
                                              const Statistics& statistics, const StreamOptions& options,
                                              std::vector<std::string> files, bool filter);

/// Counts a bad row; remembers it when it is among the first ten.
void note_bad_row(StreamStats& stats, const std::string& file, std::uint64_t line, const std::string& reason);

/// Throws: DataError that lists the first bad rows when there are more than max_bad_rows.
void check_bad_rows(const StreamStats& stats, std::uint64_t max_bad_rows);

}  // namespace hf
