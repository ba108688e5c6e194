// What the tests of the text readers share: temporary files, gzip, small configs and their schemas.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "core/schema.hpp"
#include "io/row_reader.hpp"

namespace hf::test {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "hf_io_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
    return path(name);
  }

 private:
  std::string path_;
};

inline std::string gzip(std::string_view text) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

/// The schema of a config whose features have tables of their own.
inline Schema schema_of(const Config& config) {
  Schema schema;
  const bool weighted = config.data.format == DataFormat::libsvm || config.data.format == DataFormat::libfm ||
                        config.data.format == DataFormat::libffm;
  const auto add = [&](const std::string& name, const std::string& shared, bool multi, std::uint64_t rows) {
    const bool dynamic = config.embedding.kind == TableKind::dynamic;
    SparseFeature f;
    f.name = name;
    f.table = shared.empty() ? name : shared;
    f.multi_value = multi;
    f.weighted = weighted;
    f.rows = dynamic ? 0 : rows;
    schema.sparse.push_back(f);
    TableConfig t;
    t.name = f.table;
    t.rows = f.rows;
    t.kind = config.embedding.kind;
    t.wrap_ids = config.embedding.wrap_ids;
    schema.tables.push_back(t);
  };
  for (const auto& f : config.features.categorical)
    add(f.name, f.table, weighted || !f.separator.empty(),
        f.buckets > 0 ? f.buckets : config.features.default_buckets);
  for (const auto& f : config.features.numeric) {
    if (f.transform == NumericTransform::bucketize) {
      add(f.name, f.table, false, f.boundaries.size() + 2);
      continue;
    }
    schema.dense.push_back(f.name);
    if (f.missing_indicator) schema.dense.push_back(f.name + ".missing");
  }
  return schema;
}

inline NumericFeature numeric(const std::string& name, NumericTransform transform = NumericTransform::raw) {
  NumericFeature f;
  f.name = name;
  f.transform = transform;
  return f;
}

inline CategoricalFeature category(const std::string& name,
                                   CategoryEncoding encoding = CategoryEncoding::hash,
                                   std::uint64_t buckets = 1000) {
  CategoricalFeature f;
  f.name = name;
  f.encoding = encoding;
  f.buckets = buckets;
  return f;
}

/// All 39 columns of the Criteo format.
inline Config criteo_config() {
  Config config;
  config.data.format = DataFormat::criteo;
  for (int i = 1; i <= 13; ++i)
    config.features.numeric.push_back(numeric("I" + std::to_string(i), NumericTransform::log1p));
  for (int i = 1; i <= 26; ++i)
    config.features.categorical.push_back(category("C" + std::to_string(i), CategoryEncoding::hash, 100000));
  return config;
}

/// A Criteo line: integers 1 … 13, categories "c1" … "c26" unless replaced.
inline std::string criteo_line(const std::string& label, const std::string& i1 = "1",
                               const std::string& c1 = "c1") {
  std::string line = label + "\t" + i1;
  for (int i = 2; i <= 13; ++i) line += "\t" + std::to_string(i);
  line += "\t" + c1;
  for (int i = 2; i <= 26; ++i) line += "\tc" + std::to_string(i);
  return line;
}

/// A reader over a text in memory, named "memory".
inline std::unique_ptr<RowReader> rows_of(const Config& config, std::string_view text,
                                          bool require_labels = true) {
  return open_rows(config, {"memory"}, require_labels,
                   [text](const std::string&) { return memory_bytes(text); });
}

/// The reason why the only row of `text` is malformed; "" where it is good.
inline std::string reason_of(const Config& config, std::string_view text, bool require_labels = true) {
  const auto rows = rows_of(config, text, require_labels);
  RawRow row;
  RowStatus status;
  if (!rows->next(row, status)) return "no row";
  return status.good ? "" : status.reason;
}

/// The shared real data, or "" where they are not there.
inline std::string shared_data(const std::string& name) {
  const std::string path = "../shared/data/" + name;
  return std::filesystem::exists(path) ? path : "";
}

}  // namespace hf::test
