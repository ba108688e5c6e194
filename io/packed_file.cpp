#include "io/packed_file.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace hf {

PackedLayout PackedLayout::of(const Schema& schema) {
  PackedLayout layout;
  layout.dense = schema.dense;
  for (const SparseFeature& f : schema.sparse) {
    PackedFeature p;
    p.feature = f;
    p.wide = f.rows == 0 || f.rows > (std::uint64_t{1} << 32);
    if (!f.multi_value) p.column = p.wide ? layout.wide_columns++ : layout.narrow_columns++;
    layout.sparse.push_back(std::move(p));
  }
  return layout;
}

std::string PackedLayout::to_json() const {
  nlohmann::json features = nlohmann::json::array();
  for (const PackedFeature& p : sparse)
    features.push_back({{"name", p.feature.name},
                        {"table", p.feature.table},
                        {"rows", p.feature.rows},
                        {"multi_value", p.feature.multi_value},
                        {"weighted", p.feature.weighted},
                        {"bits", p.wide ? 64 : 32}});
  const nlohmann::json all = {{"dense", dense}, {"sparse", features}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

PackedLayout PackedLayout::from_json(const std::string& text, const std::string& path) {
  const std::string where = path + ": attribute /@schema: ";
  PackedLayout layout;
  try {
    const auto all = nlohmann::json::parse(text);
    layout.dense = all.at("dense").get<std::vector<std::string>>();
    for (const auto& j : all.at("sparse")) {
      PackedFeature p;
      p.feature.name = j.at("name").get<std::string>();
      p.feature.table = j.at("table").get<std::string>();
      p.feature.rows = j.at("rows").get<std::uint64_t>();
      p.feature.multi_value = j.at("multi_value").get<bool>();
      p.feature.weighted = j.at("weighted").get<bool>();
      const int bits = j.at("bits").get<int>();
      if (bits != 32 && bits != 64)
        throw FormatError(where + "feature " + p.feature.name + ": bits: expected 32 or 64, found " +
                          std::to_string(bits));
      p.wide = bits == 64;
      if (!p.feature.multi_value) p.column = p.wide ? layout.wide_columns++ : layout.narrow_columns++;
      layout.sparse.push_back(std::move(p));
    }
  } catch (const nlohmann::json::exception& e) {
    throw FormatError(where + e.what());
  }
  return layout;
}

std::string bag_group(std::size_t feature) { return "/bag_" + std::to_string(feature); }

PackedFile::PackedFile(const std::string& path) : file_(h5::File::open(path)) {
  std::string format;
  try {
    format = file_.text_attribute("/", "format");
  } catch (const FormatError&) {
    format.clear();
  }
  if (format != kPackedFormat)
    throw FormatError(path + ": expected a packed data set (attribute format = \"" + kPackedFormat +
                      "\"), found " +
                      (format.empty() ? std::string("another HDF5 file") : "\"" + format + "\""));
  if (const auto version = file_.integer_attribute("/", "format_version"); version != kPackedVersion)
    throw FormatError(path + ": format_version: expected " + std::to_string(kPackedVersion) + ", found " +
                      std::to_string(version));
  rows_ = file_.integer_attribute("/", "rows");
  layout_ = PackedLayout::from_json(file_.text_attribute("/", "schema"), path);

  const auto open = [&](const std::string& name, h5::Type type, std::uint64_t width, std::uint64_t rows) {
    h5::Dataset d = file_.open_dataset(name, type, width);
    if (d.rows() != rows)
      throw FormatError(path + ": " + name + ": expected " + std::to_string(rows) + " rows, found " +
                        std::to_string(d.rows()));
    return d;
  };
  if (file_.has("/labels")) labels_ = open("/labels", h5::Type::u8, 1, rows_);
  if (!layout_.dense.empty()) dense_ = open("/dense", h5::Type::f32, layout_.dense.size(), rows_);
  if (layout_.narrow_columns > 0) narrow_ = open("/ids32", h5::Type::u32, layout_.narrow_columns, rows_);
  if (layout_.wide_columns > 0) wide_ = open("/ids64", h5::Type::u64, layout_.wide_columns, rows_);
  bags_.resize(layout_.sparse.size());
  for (std::size_t f = 0; f < bags_.size(); ++f) {
    const PackedFeature& p = layout_.sparse[f];
    if (!p.feature.multi_value) continue;
    Bag& bag = bags_[f];
    bag.offsets = open(bag_group(f) + "/offsets", h5::Type::u64, 1, rows_ + 1);
    bag.ids = file_.open_dataset(bag_group(f) + "/ids", p.wide ? h5::Type::u64 : h5::Type::u32, 1);
    if (p.feature.weighted) bag.weights = open(bag_group(f) + "/weights", h5::Type::f32, 1, bag.ids.rows());
  }
}

void PackedFile::prepare(Batch& batch) const {
  batch.clear();
  batch.num_dense = layout_.dense.size();
  batch.sparse.resize(layout_.sparse.size());
  for (std::size_t f = 0; f < batch.sparse.size(); ++f)
    if (layout_.sparse[f].feature.multi_value) batch.sparse[f].offsets.push_back(0);
}

void PackedFile::read(std::uint64_t first, std::uint64_t count, Batch& out) {
  const std::size_t before = out.rows;
  if (labels_) {
    label_bytes_.resize(count);
    labels_->read(first, count, label_bytes_.data());
    out.labels.insert(out.labels.end(), label_bytes_.begin(), label_bytes_.end());
  }
  if (dense_) {
    out.dense.resize((before + count) * out.num_dense);
    dense_->read(first, count, out.dense.data() + before * out.num_dense);
  }
  if (narrow_) {
    narrow_ids_.resize(count * layout_.narrow_columns);
    narrow_->read(first, count, narrow_ids_.data());
  }
  if (wide_) {
    wide_ids_.resize(count * layout_.wide_columns);
    wide_->read(first, count, wide_ids_.data());
  }
  const auto take = [&](const auto& rows, std::size_t columns, std::size_t column, SparseColumn& to) {
    to.ids.resize(before + count);
    for (std::size_t r = 0; r < count; ++r) to.ids[before + r] = rows[r * columns + column];
  };
  for (std::size_t f = 0; f < layout_.sparse.size(); ++f) {
    const PackedFeature& p = layout_.sparse[f];
    if (p.feature.multi_value)
      read_bag(f, first, count, out.sparse[f]);
    else if (p.wide)
      take(wide_ids_, layout_.wide_columns, p.column, out.sparse[f]);
    else
      take(narrow_ids_, layout_.narrow_columns, p.column, out.sparse[f]);
  }
  out.rows += count;
}

void PackedFile::read_bag(std::size_t feature, std::uint64_t first, std::uint64_t count, SparseColumn& out) {
  Bag& bag = bags_[feature];
  const auto damaged = [&](const std::string& what) {
    throw FormatError(path() + ": " + bag_group(feature) + " (feature " +
                      layout_.sparse[feature].feature.name + "): " + what);
  };
  offsets_.resize(count + 1);
  bag.offsets.read(first, count + 1, offsets_.data());
  for (std::size_t r = 0; r < count; ++r)
    if (offsets_[r] > offsets_[r + 1])
      damaged("offsets: expected rising numbers at row " + std::to_string(first + r));
  if (offsets_.back() > bag.ids.rows())
    damaged("offsets: expected at most " + std::to_string(bag.ids.rows()) + ", found " +
            std::to_string(offsets_.back()));
  const std::uint64_t begin = offsets_.front(), values = offsets_.back() - begin;
  const std::size_t before = out.ids.size();
  if (before + values > std::numeric_limits<std::uint32_t>::max())
    damaged("more than 2^32 values in one batch");
  out.ids.resize(before + values);
  bag.ids.read(begin, values, out.ids.data() + before);
  if (bag.weights) {
    out.weights.resize(before + values);
    bag.weights->read(begin, values, out.weights.data() + before);
  }
  for (std::size_t r = 1; r <= count; ++r)
    out.offsets.push_back(static_cast<std::uint32_t>(before + offsets_[r] - begin));
}

}  // namespace hf
