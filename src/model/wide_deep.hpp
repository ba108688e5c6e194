// Wide & Deep. Source: Cheng et al., "Wide & Deep Learning for Recommender Systems" (DLRS 2016), eq. 3:
//   logit = Σ_f w_f + MLP(v_1, …, v_F, dense)
// The wide part is linear in the categorical features and has tables and an optimizer (FTRL) of its own; the
// bias is that of the network's last layer.
// Shape: dense [batch, num_dense]; deep groups [batch, lookups,
// dim], one per dim; last the wide group
//        [batch, features, 1]; no group at all without categorical features.
// Threading: a model belongs to one thread.
#pragma once

#include "model/mlp.hpp"
#include "model/model_inputs.hpp"

namespace hf {

class WideDeepModel : public CtrModel {
 public:
  WideDeepModel(const Config& config, const Schema& schema);
  torch::Tensor forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) override;

 private:
  InputShape shape_;
  std::size_t deep_groups_;
  std::shared_ptr<Mlp> deep_;
};

}  // namespace hf
