// Factorization machine. Source: Rendle, "Factorization Machines" (ICDM 2010), eq. 1 in the form of eq. 5:
//   logit = b + Σ_f w_f + Σ_{f<g} <v_f, v_g> + <u, dense>
// over the categorical features; dense columns enter linearly.
// Shape: dense [batch, num_dense]; one group [batch, features, k + 1]: v_f, then w_f; none without
// categorical
//        features.
// Threading: a model belongs to one thread.
#pragma once

#include "model/model_inputs.hpp"

namespace hf {

class FmModel : public CtrModel {
 public:
  FmModel(const Config& config, const Schema& schema);
  torch::Tensor forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) override;

 private:
  InputShape shape_;
  torch::Tensor bias_;          ///< [1], zero at the start
  torch::Tensor dense_weight_;  ///< [num_dense], zeros at the start; undefined without dense columns
};

}  // namespace hf
