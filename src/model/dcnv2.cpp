#include "model/dcnv2.hpp"

#include <string>

#include "model/interactions.hpp"

namespace hf {

DcnV2Model::DcnV2Model(const Config& config, const Schema& schema) : shape_(config, schema) {
  const std::int64_t width = shape_.width(shape_.groups.size());
  const auto rank = static_cast<std::int64_t>(config.model.cross_rank);
  Initializer init(config.seed);
  for (std::uint32_t l = 0; l < config.model.cross_layers; ++l) {
    const std::string prefix = "cross" + std::to_string(l) + "_";
    CrossLayer layer;
    if (rank > 0) layer.v = register_parameter(prefix + "v", init.xavier_normal(rank, width));
    layer.w = register_parameter(prefix + "w", init.xavier_normal(width, rank > 0 ? rank : width));
    layer.b = register_parameter(prefix + "b", torch::zeros({width}));
    cross_.push_back(std::move(layer));
  }
  deep_ = register_module("deep", std::make_shared<Mlp>(MlpOptions{mlp_widths(width, config.model.hidden, 1),
                                                                   false, config.model.dropout, config.seed},
                                                        init));
}

torch::Tensor DcnV2Model::forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) {
  shape_.check(dense, groups);
  const torch::Tensor x0 = concat_features(groups, dense);
  torch::Tensor x = x0;
  for (const CrossLayer& layer : cross_) {
    const torch::Tensor projected = layer.v.defined() ? torch::linear(x, layer.v) : x;
    x = torch::addcmul(x, x0, torch::linear(projected, layer.w, layer.b));
  }
  return deep_->forward(x).squeeze(1);
}

}  // namespace hf
