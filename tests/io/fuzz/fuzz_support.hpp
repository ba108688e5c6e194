// What the fuzz programs share: the way from bytes to a batch, and what must hold of it whatever the bytes
// are.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "../io_test_support.hpp"
#include "core/error.hpp"
#include "io/encoder.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace hf::fuzz {

inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

/// Reads and encodes every row of `text`.
inline void read_all(const Config& config, const Schema& schema, std::string_view text, bool require_labels) {
  RowEncoder encoder(config, schema, {});
  Batch batch;
  encoder.prepare(batch);
  std::size_t good = 0;
  try {
    const auto rows = test::rows_of(config, text, require_labels);
    RawRow row;
    std::string reason;
    std::uint64_t last_line = 0;
    while (rows->advance()) {
      require(rows->line() > last_line, "lines are counted");
      last_line = rows->line();
      if (config.data.split.by == SplitBy::column) rows->split_text();
      reason.clear();
      if (!rows->parse(row, reason)) {
        require(!reason.empty(), "a malformed row has a reason");
        continue;
      }
      require(!require_labels || row.label.has_value(), "a label where one is required");
      if (encoder.encode(row, batch, reason))
        ++good;
      else
        require(!reason.empty(), "a bad row has a reason");
    }
  } catch (const DataError&) {  // a csv header without the columns
  }
  require(batch.rows == good, "rows");
  require(batch.labels.empty() || batch.labels.size() == good, "labels");
  for (const float y : batch.labels) require(y == 0.0F || y == 1.0F, "label");
  require(batch.dense.size() == good * schema.num_dense(), "dense");
  for (const float x : batch.dense) require(std::isfinite(x), "finite");
  require(batch.sparse.size() == schema.num_sparse(), "sparse");
  for (std::size_t i = 0; i < batch.sparse.size(); ++i) {
    const SparseColumn& c = batch.sparse[i];
    require(schema.sparse[i].multi_value ? c.offsets.size() == good + 1 && c.offsets.back() == c.ids.size()
                                         : c.offsets.empty() && c.ids.size() == good,
            "bags");
    require(c.weights.empty() || c.weights.size() == c.ids.size(), "weights");
    if (schema.sparse[i].rows > 0)
      for (const RowId id : c.ids) require(id < schema.sparse[i].rows, "ids in range");
  }
}

/// Now and then starts again from a seed: no corpus on disk is needed.
inline std::size_t mutate(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned random,
                          const std::vector<std::string>& seeds) {
  std::minstd_rand generator(random);
  if (size < 2 || generator() % 64 == 0) {
    const std::string& seed = seeds[generator() % seeds.size()];
    size = seed.copy(reinterpret_cast<char*>(data), max_size);
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

/// The first byte of an input chooses options, the rest is the text.
struct Input {
  unsigned options = 0;
  std::string_view text;
};
inline Input input_of(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return {};
  return {data[0], std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1)};
}

}  // namespace hf::fuzz
