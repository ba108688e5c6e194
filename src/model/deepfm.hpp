// DeepFM. Source: Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction"
// (IJCAI 2017), eq. 1-4: logit = y_FM + y_DNN, both over the same embeddings.
//   y_FM  = Σ_f w_f + Σ_{f<g} <v_f, v_g> + <u, dense>
//   y_DNN = MLP(v_1, …, v_F, dense)
// Shape: dense [batch, num_dense]; one group [batch, features, k + 1]: v_f, then w_f; none without
// categorical
//        features. The network's input is [batch, features·k + num_dense].
// Threading: a model belongs to one thread.
#pragma once

#include "model/mlp.hpp"
#include "model/model_inputs.hpp"

namespace hf {

class DeepFmModel : public CtrModel {
 public:
  DeepFmModel(const Config& config, const Schema& schema);
  torch::Tensor forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) override;

 private:
  InputShape shape_;
  torch::Tensor dense_weight_;  ///< [num_dense], zeros at the start; undefined without dense columns
  std::shared_ptr<Mlp> deep_;
};

}  // namespace hf
