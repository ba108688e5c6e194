// Logistic regression, the linear model of McMahan et al., "Ad Click Prediction: a View from the Trenches"
// (KDD 2013), section 3: logit = b + Σ_f w_f + <u, dense>.
// Shape: dense [batch, num_dense]; one group [batch,
// features, 1] of linear weights w, or none without categorical
//        features.
// Threading: a model belongs to one thread.
#pragma once

#include "model/model_inputs.hpp"

namespace hf {

class LrModel : public CtrModel {
 public:
  LrModel(const Config& config, const Schema& schema);
  torch::Tensor forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) override;

 private:
  InputShape shape_;
  torch::Tensor bias_;          ///< [1], zero at the start
  torch::Tensor dense_weight_;  ///< [num_dense], zeros at the start; undefined without dense columns
};

}  // namespace hf
