#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "model/model.hpp"

namespace hf {
namespace {

// What a model makes of the tables of the schema.
enum class Width : std::uint8_t {
  linear,   // dim 1, zeros
  factors,  // dim k + 1: k factors and a linear weight that starts at zero
  as_is,    // dim k
};

bool needs_equal_dims(ModelKind kind) {
  return kind == ModelKind::fm || kind == ModelKind::deepfm || kind == ModelKind::dlrm;
}

std::uint32_t dim_of(const Config& config, const TableConfig& table) {
  return table.dim.value_or(config.embedding.dim);
}

void check_equal_dims(const Config& config, const Schema& schema) {
  for (const TableConfig& table : schema.tables)
    if (dim_of(config, table) != dim_of(config, schema.tables.front()))
      throw ConfigError(std::string("model ") + to_string(config.model.name) +
                        " needs tables of equal dim: table '" + schema.tables.front().name + "' has dim " +
                        std::to_string(dim_of(config, schema.tables.front())) + ", table '" + table.name +
                        "' has dim " + std::to_string(dim_of(config, table)));
}

std::size_t table_index(const Schema& schema, const std::string& name) {
  const auto found = std::find_if(schema.tables.begin(), schema.tables.end(),
                                  [&](const TableConfig& table) { return table.name == name; });
  HF_CHECK(found != schema.tables.end(), "schema without the table '" + name + "' that a feature uses");
  return static_cast<std::size_t>(found - schema.tables.begin());
}

void add_tables(EmbeddingPlan& plan, const Config& config, const Schema& schema, Width width) {
  for (const TableConfig& table : schema.tables) {
    const std::uint32_t dim = dim_of(config, table);
    switch (width) {
      case Width::linear:
        plan.tables.push_back(make_table_spec(config, table, 1, 1));
        break;
      case Width::factors:
        plan.tables.push_back(make_table_spec(config, table, dim + 1, 1));
        break;
      case Width::as_is:
        plan.tables.push_back(make_table_spec(config, table, dim, 0));
        break;
    }
  }
}

// One group per width, in the order in which the features use them.
void add_groups(EmbeddingPlan& plan, const Schema& schema) {
  for (std::size_t feature = 0; feature < schema.sparse.size(); ++feature) {
    const std::size_t table = table_index(schema, schema.sparse[feature].table);
    const std::uint32_t dim = plan.tables[table].dim;
    auto group = std::find_if(plan.groups.begin(), plan.groups.end(),
                              [&](const LookupGroup& candidate) { return candidate.dim == dim; });
    if (group == plan.groups.end()) group = plan.groups.insert(group, LookupGroup{dim, {}});
    group->lookups.push_back({feature, table, schema.sparse[feature].pooling});
  }
}

// FTRL with the learning rate that TensorFlow's release of Wide & Deep gives its linear part.
OptimizerSpec default_wide_optimizer(std::size_t features) {
  OptimizerSpec spec;
  spec.kind = OptimizerKind::ftrl;
  spec.learning_rate =
      std::min(0.2F, 1.0F / std::sqrt(static_cast<float>(std::max<std::size_t>(features, 1))));
  return spec;
}

void add_wide(EmbeddingPlan& plan, const Config& config, const Schema& schema) {
  if (schema.sparse.empty()) return;
  const std::size_t first_table = plan.tables.size();
  const OptimizerSpec optimizer =
      config.model.wide_optimizer.value_or(default_wide_optimizer(schema.sparse.size()));
  for (const TableConfig& table : schema.tables) {
    plan.tables.push_back(make_table_spec(config, table, 1, 1, ".wide"));
    plan.tables.back().optimizer = optimizer;
  }
  LookupGroup group{1, {}};
  for (std::size_t feature = 0; feature < schema.sparse.size(); ++feature)
    group.lookups.push_back({feature, first_table + table_index(schema, schema.sparse[feature].table),
                             schema.sparse[feature].pooling});
  plan.groups.push_back(std::move(group));
}

}  // namespace

EmbeddingPlan make_embedding_plan(const Config& config, const Schema& schema) {
  if (needs_equal_dims(config.model.name)) check_equal_dims(config, schema);
  EmbeddingPlan plan;
  switch (config.model.name) {
    case ModelKind::lr:
      add_tables(plan, config, schema, Width::linear);
      break;
    case ModelKind::fm:
    case ModelKind::deepfm:
      add_tables(plan, config, schema, Width::factors);
      break;
    case ModelKind::wide_deep:
    case ModelKind::dlrm:
    case ModelKind::dcnv2:
      add_tables(plan, config, schema, Width::as_is);
      break;
  }
  add_groups(plan, schema);
  if (config.model.name == ModelKind::wide_deep) add_wide(plan, config, schema);
  return plan;
}

}  // namespace hf
