// Data sets as streams of encoded batches: what a worker trains and evaluates on.
//
// Row stream: the rows of a split in file order (files in the config's order, directories and globs sorted by
// name). Every line that belongs to the split has a position, malformed or not. The stream is cut into
// consecutive blocks of batch_size positions; block k is dealt to worker k mod num_workers. So step t of W
// workers with batch b covers positions [t·W·b, (t+1)·W·b): the same rows as one worker with batch W·b. A
// malformed row makes its batch shorter and is counted by the worker that owns the block only.
// Threading: a stream is used by one thread; it runs its own prefetch thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/config.hpp"
#include "core/schema.hpp"

namespace hf {

enum class Split : std::uint8_t { train, validation, test };
const char* to_string(Split split) noexcept;

struct BadRow {
  std::string file;
  std::uint64_t line = 0;  ///< 1-based; packed data: row number
  std::string reason;
};

struct StreamStats {
  std::uint64_t rows = 0;              ///< good rows delivered
  std::uint64_t bad_rows = 0;          ///< malformed rows in this worker's blocks
  std::vector<BadRow> first_bad_rows;  ///< the first ten
};

struct StreamOptions {
  Split split = Split::train;
  std::uint32_t batch_size = 2048;
  std::uint32_t worker = 0, num_workers = 1;
  std::uint32_t epoch = 0;     ///< shuffling
  bool require_labels = true;  ///< false: `predict` on unlabelled rows
};

class BatchStream {
 public:
  virtual ~BatchStream() = default;
  /// The next batch of this worker (never an empty one unless every row of the block was bad); false at the
  /// end.
  /// Throws: DataError when this worker saw more than max_bad_rows; IoError, FormatError.
  virtual bool next(Batch& out) = 0;
  virtual StreamStats stats() const = 0;
  /// Known number of rows of the split over all workers, or 0 (text files are not counted in advance).
  virtual std::uint64_t total_rows_hint() const { return 0; }
};

/// What has to be known of the data before the schema is complete.
struct DataDescription {
  std::vector<std::pair<std::string, std::uint64_t>> vocabulary_sizes;  ///< feature → rows of its table
};

/// Reads statistics.json or the attributes of the packed files; checks that every named input exists and is
/// readable.
/// Throws: DataError/IoError/FormatError listing all problems.
DataDescription describe_data(const Config& config);

/// Requires: schema made from config and describe_data(config).
std::unique_ptr<BatchStream> open_stream(const Config& config, const Schema& schema,
                                         const StreamOptions& options);

/// True when the config names any input for the split (files, or a ratio/column rule that feeds it).
bool has_split(const Config& config, Split split) noexcept;

}  // namespace hf
