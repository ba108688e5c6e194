// The models and what they look up. A model never sees ids: it gets the dense features and, per group of
// lookups of equal width, one tensor of pooled embedding rows.
// Threading: a model belongs to one thread.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/schema.hpp"
#include "core/table_spec.hpp"

namespace hf {

/// A feature looked up in a table: the pooled rows of Batch::sparse[feature] from tables[table].
struct Lookup {
  std::size_t feature;
  std::size_t table;
  Pooling pooling;
};

/// Lookups of equal width, delivered as one tensor. Shape: [batch, lookups.size(), dim].
struct LookupGroup {
  std::uint32_t dim;
  std::vector<Lookup> lookups;
};

struct EmbeddingPlan {
  std::vector<TableSpec> tables;
  std::vector<LookupGroup> groups;
};

/// The tables and lookups that the configured model needs:
///   lr         one group, dim 1 (linear weights, zeros at the start)
///   fm, deepfm one group, dim k+1: k factors and a linear weight (last column, zero at the start)
///   wide_deep  deep group(s) by dim; then one wide group of dim 1 from tables "NAME.wide" with
///   wide_optimizer dlrm       one group, dim k dcnv2      group(s) by dim
/// Throws: ConfigError where the model needs equal dims and the tables' dims differ (names both).
EmbeddingPlan make_embedding_plan(const Config& config, const Schema& schema);

class CtrModel : public torch::nn::Module {
 public:
  /// dense: [batch, num_dense]; groups: as the plan says. Returns logits, shape [batch].
  virtual torch::Tensor forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) = 0;
};

/// Parameters are initialised from config.seed alone (same on every worker).
std::shared_ptr<CtrModel> make_model(const Config& config, const Schema& schema);

}  // namespace hf
