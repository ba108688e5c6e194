#include "model/deepfm.hpp"

#include "model/interactions.hpp"

namespace hf {

DeepFmModel::DeepFmModel(const Config& config, const Schema& schema) : shape_(config, schema) {
  if (shape_.num_dense > 0)
    dense_weight_ = register_parameter("dense_weight", torch::zeros({shape_.num_dense}));
  const std::int64_t factors =
      shape_.groups.empty() ? 0 : shape_.groups[0].lookups * (shape_.groups[0].dim - 1);
  Initializer init(config.seed);
  deep_ = register_module(
      "deep", std::make_shared<Mlp>(MlpOptions{mlp_widths(factors + shape_.num_dense, config.model.hidden, 1),
                                               false, config.model.dropout, config.seed},
                                    init));
}

torch::Tensor DeepFmModel::forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) {
  shape_.check(dense, groups);
  if (groups.empty()) return add_dense_terms(deep_->forward(dense).squeeze(1), dense, dense_weight_);
  const FactorizationTerms terms = factorization_terms(groups[0], dense, /*with_features=*/true);
  return add_dense_terms(terms.logit + deep_->forward(terms.features).squeeze(1), dense, dense_weight_);
}

}  // namespace hf
