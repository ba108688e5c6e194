#include "core/schema.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace hf {
namespace {

/// Every optional filled in from `embedding`.
TableConfig resolved(TableConfig table, const EmbeddingConfig& defaults) {
  table.dim = table.dim.value_or(defaults.dim);
  table.kind = table.kind.value_or(defaults.kind);
  table.wrap_ids = table.wrap_ids.value_or(defaults.wrap_ids);
  table.init = table.init.value_or(defaults.init);
  table.init_scale = table.init_scale.value_or(defaults.init_scale);
  table.optimizer = table.optimizer.value_or(defaults.optimizer);
  if (*table.kind == TableKind::dynamic) table.rows = 0;
  return table;
}

class SchemaBuilder {
 public:
  explicit SchemaBuilder(const Config& config) : config_(config) {}

  /// Returns the rows of the table (0 = dynamic). `own_rows` counts for an own table only.
  std::uint64_t use_table(const std::string& feature, const std::string& shared,
                          std::optional<std::uint32_t> dim, std::uint64_t own_rows) {
    TableConfig table;
    if (shared.empty()) {
      table.name = feature;
      table.dim = dim;
      table.rows = own_rows;
    } else {
      const auto found = std::find_if(config_.tables.begin(), config_.tables.end(),
                                      [&](const TableConfig& t) { return t.name == shared; });
      if (found == config_.tables.end())
        throw ConfigError("feature " + feature + ": no table \"" + shared + "\" in tables");
      table = *found;
    }
    const auto used = std::find_if(schema.tables.begin(), schema.tables.end(),
                                   [&](const TableConfig& t) { return t.name == table.name; });
    if (used != schema.tables.end()) return used->rows;
    schema.tables.push_back(resolved(std::move(table), config_.embedding));
    return schema.tables.back().rows;
  }

  Schema schema;

 private:
  const Config& config_;
};

}  // namespace

Schema make_schema(const Config& config,
                   const std::vector<std::pair<std::string, std::uint64_t>>& vocabulary_sizes) {
  SchemaBuilder builder(config);
  Schema& schema = builder.schema;
  const DataFormat format = config.data.format;
  const bool sparse_text =
      format == DataFormat::libsvm || format == DataFormat::libfm || format == DataFormat::libffm;
  for (const NumericFeature& f : config.features.numeric) {
    if (f.transform == NumericTransform::bucketize) continue;
    schema.dense.push_back(f.name);
    if (f.missing_indicator) schema.dense.push_back(f.name + ".missing");
  }
  for (const CategoricalFeature& f : config.features.categorical) {
    std::uint64_t rows = f.buckets != 0 ? f.buckets : config.features.default_buckets;
    if (f.encoding == CategoryEncoding::vocabulary) {
      const auto size = std::find_if(vocabulary_sizes.begin(), vocabulary_sizes.end(),
                                     [&](const auto& entry) { return entry.first == f.name; });
      if (size == vocabulary_sizes.end() || size->second == 0)
        throw ConfigError("feature " + f.name + ": encoding vocabulary, but there is no vocabulary of it" +
                          (config.data.statistics.empty()
                               ? " (data.statistics is not set; `hyperframes convert` writes it)"
                               : " in " + config.data.statistics));
      rows = size->second;
    }
    SparseFeature out;
    out.name = f.name;
    out.table = f.table.empty() ? f.name : f.table;
    out.pooling = f.pooling;
    out.multi_value = sparse_text || !f.separator.empty();
    out.weighted = sparse_text;
    out.rows = builder.use_table(f.name, f.table, f.dim, rows);
    schema.sparse.push_back(std::move(out));
  }
  for (const NumericFeature& f : config.features.numeric) {
    if (f.transform != NumericTransform::bucketize) continue;
    SparseFeature out;
    out.name = f.name;
    out.table = f.table.empty() ? f.name : f.table;
    out.rows = builder.use_table(f.name, f.table, f.dim, f.boundaries.size() + 2);
    schema.sparse.push_back(std::move(out));
  }
  return std::move(builder.schema);
}

TableSpec make_table_spec(const Config& config, const TableConfig& table, std::uint32_t dim,
                          std::uint32_t zero_tail, const std::string& name_suffix) {
  const TableConfig full = resolved(table, config.embedding);
  TableSpec spec;
  spec.name = full.name + name_suffix;
  spec.kind = *full.kind;
  spec.rows = full.rows;
  spec.dim = dim;
  spec.wrap_ids = *full.wrap_ids;
  spec.optimizer = *full.optimizer;
  spec.init = {.kind = *full.init, .scale = *full.init_scale, .zero_tail = zero_tail, .seed = config.seed};
  return spec;
}

}  // namespace hf
