#include "model/model_inputs.hpp"

#include "core/error.hpp"

namespace hf {

InputShape::InputShape(const Config& config, const Schema& schema)
    : num_dense(static_cast<std::int64_t>(schema.num_dense())) {
  for (const LookupGroup& group : make_embedding_plan(config, schema).groups)
    groups.push_back({static_cast<std::int64_t>(group.lookups.size()), static_cast<std::int64_t>(group.dim)});
}

std::int64_t InputShape::width(std::size_t groups_used) const {
  std::int64_t sum = num_dense;
  for (std::size_t i = 0; i < groups_used; ++i) sum += groups[i].lookups * groups[i].dim;
  return sum;
}

void InputShape::check(const torch::Tensor& dense, const std::vector<torch::Tensor>& inputs) const {
  HF_CHECK(dense.dim() == 2 && dense.size(1) == num_dense,
           "dense: expected [batch, " + std::to_string(num_dense) + "]");
  HF_CHECK(inputs.size() == groups.size(), "expected " + std::to_string(groups.size()) +
                                               " lookup groups, found " + std::to_string(inputs.size()));
  for (std::size_t i = 0; i < groups.size(); ++i)
    HF_CHECK(inputs[i].dim() == 3 && inputs[i].size(0) == dense.size(0) &&
                 inputs[i].size(1) == groups[i].lookups && inputs[i].size(2) == groups[i].dim,
             "lookup group " + std::to_string(i) + ": expected [batch, " + std::to_string(groups[i].lookups) +
                 ", " + std::to_string(groups[i].dim) + "]");
}

torch::Tensor add_dense_terms(const torch::Tensor& logit, const torch::Tensor& dense,
                              const torch::Tensor& weight) {
  return weight.defined() ? at::addmv(logit, dense, weight) : logit;
}

}  // namespace hf
