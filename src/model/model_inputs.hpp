// What every model asks of its inputs, and the linear terms over dense columns that several of them share.
// Threading: the caller's thread.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "model/initializer.hpp"
#include "model/model.hpp"

namespace hf {

/// The widths that a model was built for.
struct InputShape {
  std::int64_t num_dense = 0;
  struct Group {
    std::int64_t lookups;
    std::int64_t dim;
  };
  std::vector<Group> groups;

  InputShape(const Config& config, const Schema& schema);

  /// Floats of one row when everything is laid side by side; the first `groups_used` groups only.
  std::int64_t width(std::size_t groups_used) const;

  /// Throws: CheckFailed unless dense is [batch, num_dense] and groups[i] is [batch, lookups, dim].
  void check(const torch::Tensor& dense, const std::vector<torch::Tensor>& inputs) const;
};

/// logit + dense · weight, where the model has dense columns (weight is defined).
torch::Tensor add_dense_terms(const torch::Tensor& logit, const torch::Tensor& dense,
                              const torch::Tensor& weight);

}  // namespace hf
