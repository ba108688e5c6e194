#include "io/packed.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "io/hdf5.hpp"
#include "io/packed_file.hpp"

namespace hf {

struct PackedWriter::Impl {
  struct Bag {
    h5::Dataset offsets, ids;
    std::optional<h5::Dataset> weights;
    std::uint64_t values = 0;
  };

  // Declared before the HDF5 file, so that the temporary file is removed after it was closed.
  AtomicFile atomic;
  h5::File file;
  PackedLayout layout;
  std::vector<bool> wrap;  // by feature: ids are meant modulo the table's rows
  bool compress;
  std::uint64_t rows = 0;
  bool with_labels = false;
  std::optional<h5::Dataset> labels, dense, narrow, wide;
  std::vector<Bag> bags;
  std::vector<std::uint32_t> narrow_ids;
  std::vector<std::uint64_t> wide_ids;
  std::vector<std::uint8_t> label_bytes;

  Impl(const std::string& path, const Schema& schema, bool compress_chunks)
      : atomic(path),
        file(h5::File::create(atomic.temporary_path())),
        layout(PackedLayout::of(schema)),
        compress(compress_chunks) {
    for (const SparseFeature& f : schema.sparse) {
      bool wraps = false;
      for (const TableConfig& t : schema.tables)
        wraps = wraps || (t.name == f.table && t.wrap_ids.value_or(false));
      wrap.push_back(wraps);
    }
    if (!layout.dense.empty()) dense = create("/dense", h5::Type::f32, layout.dense.size());
    if (layout.narrow_columns > 0) narrow = create("/ids32", h5::Type::u32, layout.narrow_columns);
    if (layout.wide_columns > 0) wide = create("/ids64", h5::Type::u64, layout.wide_columns);
    bags.resize(layout.sparse.size());
    for (std::size_t f = 0; f < bags.size(); ++f) {
      const PackedFeature& p = layout.sparse[f];
      if (!p.feature.multi_value) continue;
      const std::string group = bag_group(f);
      file.create_group(group);
      file.set_attribute(group, "name", p.feature.name);
      bags[f].offsets = create(group + "/offsets", h5::Type::u64, 1);
      const std::uint64_t zero = 0;
      bags[f].offsets.append(&zero, 1);
      bags[f].ids = create(group + "/ids", p.wide ? h5::Type::u64 : h5::Type::u32, 1);
      if (p.feature.weighted) bags[f].weights = create(group + "/weights", h5::Type::f32, 1);
    }
  }

  h5::Dataset create(const std::string& name, h5::Type type, std::uint64_t width) {
    // Narrow datasets get more rows per chunk: below some 8 KB a chunk's bookkeeping outweighs its contents.
    return file.create_dataset(name, type, {width, width == 1 ? 16384U : 2048U, compress});
  }

  RowId checked(RowId id, std::size_t feature) const {
    const SparseFeature& f = layout.sparse[feature].feature;
    if (f.rows == 0 || id < f.rows) return id;
    if (wrap[feature]) return id % f.rows;
    throw DataError("feature " + f.name + ": table " + f.table + ": id " + std::to_string(id) +
                    " is out of range, the table has " + std::to_string(f.rows) + " rows");
  }

  void append_bag(std::size_t feature, const SparseColumn& column, std::size_t batch_rows) {
    const PackedFeature& p = layout.sparse[feature];
    HF_CHECK(column.offsets.empty() || column.offsets.size() == batch_rows + 1,
             p.feature.name + ": offsets of the batch's rows");
    HF_CHECK(column.weights.empty() || p.feature.weighted,
             p.feature.name + ": weights only for weighted features");
    const std::size_t begin = column.bag_begin(0), end = column.bag_end(batch_rows - 1);
    HF_CHECK(begin <= end && end <= column.ids.size(), p.feature.name + ": offsets inside the ids");
    HF_CHECK(column.weights.empty() || column.weights.size() == column.ids.size(),
             p.feature.name + ": one weight per id");
    Bag& bag = bags[feature];
    wide_ids.clear();
    for (std::size_t r = 0; r < batch_rows; ++r) wide_ids.push_back(bag.values + column.bag_end(r) - begin);
    bag.offsets.append(wide_ids.data(), batch_rows);
    wide_ids.clear();
    narrow_ids.clear();
    for (std::size_t i = begin; i < end; ++i) {
      const RowId id = checked(column.ids[i], feature);
      if (p.wide)
        wide_ids.push_back(id);
      else
        narrow_ids.push_back(static_cast<std::uint32_t>(id));
    }
    if (p.wide)
      bag.ids.append(wide_ids.data(), wide_ids.size());
    else
      bag.ids.append(narrow_ids.data(), narrow_ids.size());
    if (bag.weights) {
      if (column.weights.empty()) {
        const std::vector<float> ones(end - begin, 1.0F);
        bag.weights->append(ones.data(), ones.size());
      } else {
        bag.weights->append(column.weights.data() + begin, end - begin);
      }
    }
    bag.values += end - begin;
  }

  void append(const Batch& batch) {
    const std::size_t n = batch.rows;
    HF_CHECK(batch.sparse.size() == layout.sparse.size() && batch.dense.size() == n * layout.dense.size(),
             "the batch has the columns of the schema");
    if (n == 0) return;
    if (rows == 0) {
      with_labels = !batch.labels.empty();
      if (with_labels) labels = create("/labels", h5::Type::u8, 1);
    }
    if (batch.labels.size() != (with_labels ? n : 0))
      throw DataError(atomic.path() + ": some rows have labels and others have none (near row " +
                      std::to_string(rows) + ")");
    if (labels) {
      label_bytes.resize(n);
      std::transform(batch.labels.begin(), batch.labels.end(), label_bytes.begin(),
                     [](float y) { return static_cast<std::uint8_t>(y > 0.5F); });
      labels->append(label_bytes.data(), n);
    }
    if (dense) dense->append(batch.dense.data(), n);
    for (std::size_t f = 0; f < layout.sparse.size(); ++f)
      if (layout.sparse[f].feature.multi_value) append_bag(f, batch.sparse[f], n);

    narrow_ids.resize(n * layout.narrow_columns);
    wide_ids.resize(n * layout.wide_columns);
    for (std::size_t f = 0; f < layout.sparse.size(); ++f) {
      const PackedFeature& p = layout.sparse[f];
      if (p.feature.multi_value) continue;
      const SparseColumn& column = batch.sparse[f];
      HF_CHECK(column.one_per_row() && column.ids.size() == n, p.feature.name + ": exactly one id per row");
      for (std::size_t r = 0; r < n; ++r) {
        const RowId id = checked(column.ids[r], f);
        if (p.wide)
          wide_ids[r * layout.wide_columns + p.column] = id;
        else
          narrow_ids[r * layout.narrow_columns + p.column] = static_cast<std::uint32_t>(id);
      }
    }
    if (narrow) narrow->append(narrow_ids.data(), n);
    if (wide) wide->append(wide_ids.data(), n);
    rows += n;
  }

  std::uint64_t finish() {
    // An empty file counts as labelled: it must be usable wherever a part of a labelled set is.
    if (rows == 0) labels = create("/labels", h5::Type::u8, 1);
    file.set_attribute("/", "format", std::string(kPackedFormat));
    file.set_attribute("/", "format_version", kPackedVersion);
    file.set_attribute("/", "rows", rows);
    file.set_attribute("/", "num_dense", static_cast<std::uint64_t>(layout.dense.size()));
    file.set_attribute("/", "schema", layout.to_json());
    labels.reset();
    dense.reset();
    narrow.reset();
    wide.reset();
    bags.clear();
    file.close();
    atomic.commit();
    return std::filesystem::file_size(atomic.path());
  }
};

PackedWriter::PackedWriter(const std::string& path, const Schema& schema, bool compress)
    : impl_(std::make_unique<Impl>(path, schema, compress)) {}
PackedWriter::~PackedWriter() = default;
PackedWriter::PackedWriter(PackedWriter&&) noexcept = default;
PackedWriter& PackedWriter::operator=(PackedWriter&&) noexcept = default;

void PackedWriter::append(const Batch& batch) { impl_->append(batch); }
std::uint64_t PackedWriter::rows() const noexcept { return impl_->rows; }
std::uint64_t PackedWriter::finish() { return impl_->finish(); }

DataDescription describe_packed(const Config& config, const std::vector<std::string>& files) {
  DataDescription description;
  std::string problems;
  bool missing_file = false;
  for (const std::string& path : files) {
    try {
      const PackedFile file(path);
      for (const CategoricalFeature& f : config.features.categorical) {
        if (f.encoding != CategoryEncoding::vocabulary) continue;
        const auto& sparse = file.layout().sparse;
        const auto stored = std::find_if(sparse.begin(), sparse.end(),
                                         [&](const auto& p) { return p.feature.name == f.name; });
        if (stored == sparse.end()) {
          problems += "\n  " + path + ": feature " + f.name + ": expected, but the file does not have it";
          continue;
        }
        const std::uint64_t rows = stored->feature.rows;
        auto& known = description.vocabulary_sizes;
        const auto same =
            std::find_if(known.begin(), known.end(), [&](const auto& v) { return v.first == f.name; });
        if (same == known.end())
          known.emplace_back(f.name, rows);
        else if (same->second != rows)
          problems += "\n  " + path + ": feature " + f.name + ": expected " + std::to_string(same->second) +
                      " rows as in " + files.front() + ", found " + std::to_string(rows);
      }
    } catch (const IoError& e) {
      missing_file = true;
      problems += std::string("\n  ") + e.what();
    } catch (const FormatError& e) {
      problems += std::string("\n  ") + e.what();
    }
  }
  if (problems.empty()) return description;
  if (missing_file) throw IoError("packed data:" + problems);
  throw FormatError("packed data:" + problems);
}

}  // namespace hf
