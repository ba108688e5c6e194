// DLRM. Source: Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
// Systems" (2019), sections 2.1.3 and 2.2:
//   d     = bottom MLP(dense), of the embeddings' width k, ReLU behind every layer as in the authors' program
//   z     = the dot products of all pairs of d, v_1, …, v_F
//   logit = top MLP(d, z)
// Without dense columns there is no d, and the top MLP gets (v_1, …, v_F, z).
// Shape: dense [batch, num_dense]; one group [batch, features, k], or none without categorical features.
// Threading: a model belongs to one thread.
#pragma once

#include "model/mlp.hpp"
#include "model/model_inputs.hpp"

namespace hf {

class DlrmModel : public CtrModel {
 public:
  DlrmModel(const Config& config, const Schema& schema);
  torch::Tensor forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) override;

 private:
  InputShape shape_;
  std::shared_ptr<Mlp> bottom_;  ///< null without dense columns
  std::shared_ptr<Mlp> top_;
};

}  // namespace hf
