// The shape of an encoded example, derived from a Config alone: which dense columns, which categorical features,
// which tables, and which feature looks up which table. io, src/model and ranks agree through this file.
// Threading: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/table_spec.hpp"

namespace hf {

/// A categorical column of the encoded batch (Batch::sparse[i]): a CategoricalFeature or a bucketised numeric one.
struct SparseFeature {
  std::string name;
  std::string table;  ///< name of its table
  Pooling pooling = Pooling::sum;
  bool multi_value = false;
  bool weighted = false;   ///< libsvm / libFM / libffm values
  std::uint64_t rows = 0;  ///< rows of its static table; 0 = dynamic
};

struct Schema {
  std::vector<std::string> dense;     ///< names of the columns of Batch::dense ("I1", "I1.missing", …)
  std::vector<SparseFeature> sparse;  ///< in the order of Batch::sparse
  std::vector<TableConfig> tables;  ///< every embedding table, resolved (no unset optionals), first-use order

  std::size_t num_dense() const noexcept { return dense.size(); }
  std::size_t num_sparse() const noexcept { return sparse.size(); }
};

/// Order: dense = numeric features in config order (without bucketised ones), each followed by its missing
/// indicator; sparse = categorical features in config order, then bucketised numerics in config order.
/// Static vocabulary tables get their rows from `vocabulary_sizes` (feature name → entries, from statistics.json);
/// see make_schema's callers in io. libsvm/libfm/libffm: one weighted multi-value feature per categorical feature
/// of the config (libffm: the feature's position is its field number; libsvm and libFM: exactly one feature).
/// Throws: ConfigError for a vocabulary feature without an entry in vocabulary_sizes.
Schema make_schema(const Config& config,
                   const std::vector<std::pair<std::string, std::uint64_t>>& vocabulary_sizes);

/// The TableSpec of an embedding table of the schema. `name_suffix`/`dim`/`zero_tail` let a model ask for a variant
/// (for instance dim + 1 with a zero linear column, or "NAME.wide" with dim 1).
TableSpec make_table_spec(const Config& config, const TableConfig& table, std::uint32_t dim,
                          std::uint32_t zero_tail, const std::string& name_suffix = "");

}  // namespace hf
