#include "model/dlrm.hpp"

#include "core/random.hpp"
#include "model/interactions.hpp"

namespace hf {

DlrmModel::DlrmModel(const Config& config, const Schema& schema) : shape_(config, schema) {
  const bool has_dense = shape_.num_dense > 0;
  const std::int64_t fields = shape_.groups.empty() ? 0 : shape_.groups[0].lookups;
  const std::int64_t dim = shape_.groups.empty() ? config.embedding.dim : shape_.groups[0].dim;
  const std::int64_t vectors = fields + (has_dense ? 1 : 0);
  const std::int64_t top_input = vectors * (vectors - 1) / 2 + (has_dense ? dim : fields * dim);
  Initializer init(config.seed);
  if (has_dense)
    bottom_ = register_module(
        "bottom",
        std::make_shared<Mlp>(MlpOptions{mlp_widths(shape_.num_dense, config.model.bottom_hidden, dim), true,
                                         config.model.dropout, mix64(config.seed, /*bottom*/ 1)},
                              init));
  top_ =
      register_module("top", std::make_shared<Mlp>(MlpOptions{mlp_widths(top_input, config.model.hidden, 1),
                                                              false, config.model.dropout, config.seed},
                                                   init));
}

torch::Tensor DlrmModel::forward(const torch::Tensor& dense, const std::vector<torch::Tensor>& groups) {
  shape_.check(dense, groups);
  if (!bottom_)
    return top_->forward(torch::cat({groups[0].flatten(1), pairwise_dot(groups[0])}, 1)).squeeze(1);
  const torch::Tensor d = bottom_->forward(dense);
  if (groups.empty()) return top_->forward(d).squeeze(1);
  const torch::Tensor vectors = torch::cat({d.unsqueeze(1), groups[0]}, 1);
  return top_->forward(torch::cat({d, pairwise_dot(vectors)}, 1)).squeeze(1);
}

}  // namespace hf
