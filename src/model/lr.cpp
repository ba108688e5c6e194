#include "model/lr.hpp"

namespace hf {

LrModel::LrModel(const Config& config, const Schema& schema) : shape_(config, schema) {
  bias_ = register_parameter("bias", torch::zeros({1}));
  if (shape_.num_dense > 0)
    dense_weight_ = register_parameter("dense_weight", torch::zeros({shape_.num_dense}));
}

torch::Tensor LrModel::forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) {
  shape_.check(dense, groups);
  torch::Tensor logit = bias_.expand({dense.size(0)});
  if (!groups.empty()) logit = logit + groups[0].sum({1, 2});
  return add_dense_terms(logit, dense, dense_weight_);
}

}  // namespace hf
