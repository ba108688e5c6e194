// DCN V2, stacked. Source: Wang et al., "DCN V2: Improved Deep & Cross Network and Practical Lessons for
// Web-scale Learning to Rank Systems" (WWW 2021):
//   x_0     = (v_1, …, v_F, dense)
//   x_{l+1} = x_0 ⊙ (W_l x_l + b_l) + x_l          eq. 1, cross_layers times
//   logit   = MLP(x_L)                             the stacked structure of figure 1a
// With cross_rank r > 0: W_l = U_l V_lᵀ with U_l, V_l of shape [width, r] (eq. 2, without experts).
// Shape: dense [batch, num_dense]; groups [batch, lookups, dim], one per dim; none without categorical
// features.
// Threading: a model belongs to one thread.
#pragma once

#include "model/mlp.hpp"
#include "model/model_inputs.hpp"

namespace hf {

class DcnV2Model : public CtrModel {
 public:
  DcnV2Model(const Config& config, const Schema& schema);
  torch::Tensor forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) override;

 private:
  InputShape shape_;
  struct CrossLayer {
    torch::Tensor v;  ///< [r, width]: Vᵀ; undefined for a full matrix
    torch::Tensor w;  ///< [width, r]: U; or [width, width]: W
    torch::Tensor b;  ///< [width], zeros at the start
  };
  std::vector<CrossLayer> cross_;
  std::shared_ptr<Mlp> deep_;
};

}  // namespace hf
