// The packed data set: encoded rows in an HDF5 file, written by `convert`, read by training without parsing.
//
// File := root@{format = "hyperframes-packed", format_version, rows, num_dense, schema (JSON, below)}
//   /labels   u8  [rows]              0 or 1; absent where the rows have none
//   /dense    f32 [rows, num_dense]   absent when num_dense = 0
//   /ids32    u32 [rows, n]           one-id-per-row features with 32 bits, in schema order; absent: none
//   /ids64    u64 [rows, m]           the other one-id-per-row features; absent when there are none
//   /bag_K/                           multi-value feature K (its place in the schema); attribute name
//     offsets u64 [rows + 1]          bag of row r = ids[offsets[r] … offsets[r+1])
//     ids     u32 or u64
//     weights f32                     as many as ids; only for weighted features
// schema := {"dense": [name…], "sparse": [feature…]}
// feature := {"name", "table", "rows", "multi_value", "weighted", "bits": 32 or 64}
//   rows = rows of the static table (vocabulary: entries + 2), 0 = dynamic; 32 bits when 0 < rows ≤ 2^32.
// Chunks of 2,048 rows (16,384 in datasets of one column) with checksums, optionally shuffled and deflated.
//
// Invariants: a file under its final name is complete; ids of static tables are below `rows`.
// Threading: a writer or stream is used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/config.hpp"
#include "core/schema.hpp"
#include "io/dataset.hpp"

namespace hf {

/// data.shuffle permutes blocks of so many rows, and the rows inside each.
inline constexpr std::uint64_t kShuffleBlockRows = 16384;

class PackedWriter {
 public:
  /// Throws: IoError.
  PackedWriter(const std::string& path, const Schema& schema, bool compress = true);
  /// Without finish() nothing remains.
  ~PackedWriter();
  PackedWriter(PackedWriter&&) noexcept;
  PackedWriter& operator=(PackedWriter&&) noexcept;

  /// Requires: the batch has the schema's columns and its bags fit their offsets.
  /// Throws: DataError for an id outside its static table (naming feature, table and id) and when only some
  /// of the batches have labels; IoError.
  void append(const Batch& batch);

  std::uint64_t rows() const noexcept;

  /// Makes the file durable under its name. Returns its bytes. Throws: IoError.
  std::uint64_t finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Batches of `files` by the rules of dataset.hpp; reads only the rows of this worker's blocks (when shuffled
/// or split by ratio: the 16,384-row blocks that those rows lie in). With data.shuffle the train split's
/// order is a function of (config.seed, epoch) and the files alone, the same for every number of workers.
/// multi_value and weighted follow the files, which know the format that the rows once had.
/// Throws: ConfigError for a split by column (that is done by `convert`); FormatError naming file and
/// feature, with expected and found, where a file does not fit the schema; DataError when labels are required
/// and absent; IoError.
std::unique_ptr<BatchStream> open_packed_stream(const Config& config, const Schema& schema,
                                                const StreamOptions& options, std::vector<std::string> files);

/// The table rows of the config's vocabulary features, from the files.
/// Throws: FormatError when files disagree or lack a feature; IoError.
DataDescription describe_packed(const Config& config, const std::vector<std::string>& files);

}  // namespace hf
