// One packed file, opened for reading: its checked schema and ranges of its rows. packed.hpp has the layout.
// Threading: used by one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/schema.hpp"
#include "io/hdf5.hpp"

namespace hf {

inline constexpr const char* kPackedFormat = "hyperframes-packed";
inline constexpr std::uint64_t kPackedVersion = 1;

/// Where a feature's ids lie in a packed file.
struct PackedFeature {
  SparseFeature feature;
  bool wide = false;       ///< 64-bit ids
  std::size_t column = 0;  ///< of /ids32 or /ids64; multi-value: unused
};

struct PackedLayout {
  std::vector<std::string> dense;
  std::vector<PackedFeature> sparse;
  std::size_t narrow_columns = 0, wide_columns = 0;

  static PackedLayout of(const Schema& schema);
  std::string to_json() const;
  /// Throws: FormatError naming `path` and what is wrong.
  static PackedLayout from_json(const std::string& text, const std::string& path);
};

std::string bag_group(std::size_t feature);

class PackedFile {
 public:
  /// Throws: IoError, FormatError.
  explicit PackedFile(const std::string& path);

  const std::string& path() const noexcept { return file_.path(); }
  std::uint64_t rows() const noexcept { return rows_; }
  bool has_labels() const noexcept { return labels_.has_value(); }
  const PackedLayout& layout() const noexcept { return layout_; }

  /// Appends rows [first, first + count) to `out`, which has the layout's columns (see prepare). Throws:
  /// FormatError.
  void read(std::uint64_t first, std::uint64_t count, Batch& out);

  /// Empties `batch` and gives it the layout's columns; keeps its memory.
  void prepare(Batch& batch) const;

 private:
  struct Bag {
    h5::Dataset offsets, ids;
    std::optional<h5::Dataset> weights;
  };
  void read_bag(std::size_t feature, std::uint64_t first, std::uint64_t count, SparseColumn& out);

  h5::File file_;
  std::uint64_t rows_ = 0;
  PackedLayout layout_;
  std::optional<h5::Dataset> labels_, dense_, narrow_, wide_;
  std::vector<Bag> bags_;  ///< by feature; empty handles for one-per-row features
  std::vector<std::uint8_t> label_bytes_;
  std::vector<std::uint32_t> narrow_ids_;
  std::vector<std::uint64_t> wide_ids_, offsets_;
};

}  // namespace hf
