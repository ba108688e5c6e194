// Reading packed files as a stream: split, shuffle, deal. See packed.hpp and dataset.hpp for the rules.
#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"
#include "io/packed.hpp"
#include "io/packed_file.hpp"
#include "io/split.hpp"

namespace hf {
namespace {

constexpr std::uint64_t kShuffleKey = 0x73687566;  // separates this use of the seed from others

/// Fisher–Yates with a generator whose numbers do not depend on the standard library.
template <class T>
void permute(std::vector<T>& items, std::uint64_t key) {
  SplitMix64 random(key);
  for (std::size_t i = items.size(); i > 1; --i) {
    const auto j = static_cast<std::size_t>((static_cast<unsigned __int128>(random()) * i) >> 64);
    std::swap(items[i - 1], items[j]);
  }
}

/// Every difference between a file and the schema of the config.
std::string differences(const PackedFile& file, const Schema& schema) {
  std::string out;
  const auto differ = [&](const std::string& feature, const std::string& what, const std::string& expected,
                          const std::string& found) {
    out += "\n  " + file.path() + ": feature " + feature + ": " + what + ": expected " + expected +
           ", found " + found;
  };
  const PackedLayout& layout = file.layout();
  const std::string nothing = "none";
  for (std::size_t i = 0; i < std::max(schema.dense.size(), layout.dense.size()); ++i) {
    const std::string expected = i < schema.dense.size() ? schema.dense[i] : nothing;
    const std::string found = i < layout.dense.size() ? layout.dense[i] : nothing;
    if (expected != found) differ(expected, "dense column " + std::to_string(i), expected, found);
  }
  for (std::size_t i = 0; i < std::max(schema.sparse.size(), layout.sparse.size()); ++i) {
    if (i >= schema.sparse.size() || i >= layout.sparse.size() ||
        schema.sparse[i].name != layout.sparse[i].feature.name) {
      const std::string expected = i < schema.sparse.size() ? schema.sparse[i].name : nothing;
      const std::string found = i < layout.sparse.size() ? layout.sparse[i].feature.name : nothing;
      differ(expected, "categorical feature " + std::to_string(i), expected, found);
      continue;
    }
    const SparseFeature &e = schema.sparse[i], &f = layout.sparse[i].feature;
    const auto rows = [](std::uint64_t n) {
      return n == 0 ? std::string("a dynamic table") : std::to_string(n) + " rows";
    };
    if (e.table != f.table) differ(e.name, "table", e.table, f.table);
    if (e.rows != f.rows) differ(e.name, "table " + e.table, rows(e.rows), rows(f.rows));
    if (e.multi_value && !f.multi_value) differ(e.name, "values per row", "several", "one");
  }
  return out;
}

/// Copies rows of `from` to the end of `to`.
void gather_rows(const Batch& from, const std::uint32_t* rows, std::size_t count, Batch& to) {
  if (!from.labels.empty())
    for (std::size_t i = 0; i < count; ++i) to.labels.push_back(from.labels[rows[i]]);
  const std::size_t width = from.num_dense;
  for (std::size_t i = 0; i < count && width > 0; ++i) {
    const auto begin = from.dense.begin() + static_cast<std::ptrdiff_t>(rows[i] * width);
    to.dense.insert(to.dense.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  for (std::size_t f = 0; f < from.sparse.size(); ++f) {
    const SparseColumn& source = from.sparse[f];
    SparseColumn& target = to.sparse[f];
    if (source.one_per_row()) {
      for (std::size_t i = 0; i < count; ++i) target.ids.push_back(source.ids[rows[i]]);
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t v = source.bag_begin(rows[i]); v < source.bag_end(rows[i]); ++v) {
        target.ids.push_back(source.ids[v]);
        if (!source.weights.empty()) target.weights.push_back(source.weights[v]);
      }
      target.offsets.push_back(static_cast<std::uint32_t>(target.ids.size()));
    }
  }
  to.rows += count;
}

class PackedStream : public BatchStream {
 public:
  PackedStream(const Config& config, const Schema& schema, const StreamOptions& options,
               const std::vector<std::string>& files)
      : split_(config.data.split),
        options_(options),
        filter_(split_inputs(config.data, options.split).filter),
        shuffle_(config.data.shuffle && options.split == Split::train),
        key_(mix64(mix64(config.seed, kShuffleKey), options.epoch)),
        next_block_(options.worker) {
    HF_CHECK(options.batch_size > 0 && options.num_workers > 0 && options.worker < options.num_workers,
             "stream options");
    if (filter_ && split_.by == SplitBy::column)
      throw ConfigError(
          "data.split.by = column: packed files have no input columns any more; `convert` writes one file "
          "per split");
    open(schema, files);
    plan();
  }

  bool next(Batch& out) override {
    const std::uint64_t begin = next_block_ * options_.batch_size;
    if (begin >= total_) return false;
    const std::uint64_t end = std::min<std::uint64_t>(begin + options_.batch_size, total_);
    next_block_ += options_.num_workers;
    files_.front().prepare(out);
    out.first_row = begin;
    if (filter_ || shuffle_)
      gather(begin, end, out);
    else
      read_rows(begin, end - begin, out);
    stats_.rows += out.rows;
    return true;
  }

  StreamStats stats() const override { return stats_; }
  std::uint64_t total_rows_hint() const override { return total_; }

 private:
  void open(const Schema& schema, const std::vector<std::string>& files) {
    std::string problems;
    for (const std::string& path : files) {
      PackedFile file(path);
      problems += differences(file, schema);
      if (!files_.empty()) {
        const auto& first = files_.front().layout().sparse;
        const auto& here = file.layout().sparse;
        for (std::size_t f = 0; f < std::min(first.size(), here.size()); ++f)
          if (first[f].feature.multi_value != here[f].feature.multi_value ||
              first[f].feature.weighted != here[f].feature.weighted)
            problems += "\n  " + path + ": feature " + here[f].feature.name +
                        ": expected multi_value and weighted as in " + files_.front().path();
      }
      // A file without rows has no opinion about labels.
      if (file.rows() > 0 && options_.require_labels && !file.has_labels())
        throw DataError(path + ": the rows have no labels");
      if (file.rows() > 0 && !labelled_) labelled_ = file.has_labels();
      if (file.rows() > 0 && *labelled_ != file.has_labels())
        throw FormatError(
            path + ": expected all files of the split to have labels or none; the files before it differ");
      starts_.push_back(rows_);
      rows_ += file.rows();
      files_.push_back(std::move(file));
    }
    if (!problems.empty()) throw FormatError("packed data does not fit the configuration:" + problems);
  }

  /// Order of the shuffle blocks and the stream position where each begins.
  void plan() {
    total_ = rows_;
    if (!filter_ && !shuffle_) return;
    order_.resize((rows_ + kShuffleBlockRows - 1) / kShuffleBlockRows);
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    if (shuffle_) permute(order_, key_);
    total_ = 0;
    for (const std::uint64_t block : order_) {
      position_.push_back(total_);
      const std::uint64_t first = block * kShuffleBlockRows,
                          last = std::min(first + kShuffleBlockRows, rows_);
      if (!filter_) {
        total_ += last - first;
        continue;
      }
      for (std::uint64_t row = first; row < last; ++row) total_ += ratio_split(split_, row) == options_.split;
    }
  }

  /// Rows counted over all files.
  void read_rows(std::uint64_t first, std::uint64_t count, Batch& out) {
    auto file =
        static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) -
        1;
    for (; count > 0; ++file) {
      const std::uint64_t inside = first - starts_[file];
      const std::uint64_t n = std::min(count, files_[file].rows() - inside);
      if (n > 0) files_[file].read(inside, n, out);
      first += n;
      count -= n;
    }
  }

  void load_block(std::size_t place) {
    if (loaded_ == place) return;
    // A read that fails half way must not pass for a loaded block at a retry.
    loaded_ = kNone;
    const std::uint64_t block = order_[place], first = block * kShuffleBlockRows;
    const std::uint64_t count = std::min(kShuffleBlockRows, rows_ - first);
    files_.front().prepare(block_);
    read_rows(first, count, block_);
    members_.clear();
    for (std::uint64_t r = 0; r < count; ++r)
      if (!filter_ || ratio_split(split_, first + r) == options_.split)
        members_.push_back(static_cast<std::uint32_t>(r));
    if (shuffle_) permute(members_, mix64(key_, block + 1));
    loaded_ = place;
  }

  void gather(std::uint64_t begin, std::uint64_t end, Batch& out) {
    // The last block that begins at or before `begin`: blocks without members share their successor's
    // position.
    auto place = static_cast<std::size_t>(std::upper_bound(position_.begin(), position_.end(), begin) -
                                          position_.begin()) -
                 1;
    for (; begin < end; ++place) {
      load_block(place);
      const std::uint64_t inside = begin - position_[place];
      const std::uint64_t n = std::min(end - begin, members_.size() - inside);
      gather_rows(block_, members_.data() + inside, n, out);
      begin += n;
    }
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  const SplitConfig split_;
  const StreamOptions options_;
  const bool filter_, shuffle_;
  const std::uint64_t key_;
  std::vector<PackedFile> files_;
  std::vector<std::uint64_t> starts_;    // first row of each file
  std::vector<std::uint64_t> order_;     // place in the stream → shuffle block
  std::vector<std::uint64_t> position_;  // place in the stream → first stream position
  std::optional<bool> labelled_;
  std::uint64_t rows_ = 0, total_ = 0, next_block_ = 0;
  Batch block_;  // the shuffle block at place loaded_
  std::vector<std::uint32_t> members_;
  std::size_t loaded_ = kNone;
  StreamStats stats_;
};

}  // namespace

std::unique_ptr<BatchStream> open_packed_stream(const Config& config, const Schema& schema,
                                                const StreamOptions& options,
                                                std::vector<std::string> files) {
  if (files.empty()) throw ConfigError("data: no packed file for the split");
  return std::make_unique<PackedStream>(config, schema, options, files);
}

}  // namespace hf
