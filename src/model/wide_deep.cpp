#include "model/wide_deep.hpp"

#include "model/interactions.hpp"

namespace hf {

WideDeepModel::WideDeepModel(const Config& config, const Schema& schema)
    : shape_(config, schema), deep_groups_(shape_.groups.empty() ? 0 : shape_.groups.size() - 1) {
  Initializer init(config.seed);
  deep_ = register_module(
      "deep", std::make_shared<Mlp>(MlpOptions{mlp_widths(shape_.width(deep_groups_), config.model.hidden, 1),
                                               false, config.model.dropout, config.seed},
                                    init));
}

torch::Tensor WideDeepModel::forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) {
  shape_.check(dense, groups);
  const torch::Tensor features = concat_features(std::span(groups).first(deep_groups_), dense);
  const torch::Tensor logit = deep_->forward(features).squeeze(1);
  return groups.empty() ? logit : logit + groups.back().sum({1, 2});
}

}  // namespace hf
