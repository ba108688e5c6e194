// A multi-layer perceptron, Linear + ReLU (+ dropout), as one node of the autograd graph.
// The same numbers as a torch::nn::Sequential of Linear and ReLU, in fewer passes over memory:
//   forward   per layer one GEMM, then bias, ReLU and dropout in one pass, in place
//   backward  per layer one GEMM for the weight and one for the input; the ReLU mask is applied in place in
//   the same
//             pass that sums the bias gradient; a last layer of width 1 does all of it in one pass without a
//             GEMM; the gradient of the input is skipped where nobody needs it
// Invariants: bit-identical from run to run for a given number of threads; NaN in the input reaches the
// output.
// Threading: a module belongs to one thread; its loops use LibTorch's threads.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "model/initializer.hpp"

namespace hf {

struct MlpOptions {
  std::vector<std::int64_t> widths;  ///< input, hidden layers …, output; at least two
  bool relu_last = false;            ///< ReLU (and dropout) behind the last layer too
  double dropout = 0.0;              ///< probability of dropping an output of a ReLU; in training mode only
  std::uint64_t dropout_seed = 0;    ///< masks depend on (dropout_seed, number of earlier training passes)
};

class Mlp : public torch::nn::Module {
 public:
  /// Parameters are named weight0, bias0, weight1, … with weights of shape [out, in].
  Mlp(MlpOptions options, Initializer& init);

  /// x: [batch, widths.front()], float or double as the parameters. Returns [batch, widths.back()].
  /// First derivatives only.
  torch::Tensor forward(const torch::Tensor& x);

 private:
  MlpOptions options_;
  std::vector<torch::Tensor> parameters_;  ///< weight0, bias0, weight1, …
  std::uint64_t passes_ = 0;               ///< training passes with dropout so far
};

/// {input, hidden …, output} as widths.
std::vector<std::int64_t> mlp_widths(std::int64_t input, const std::vector<std::uint32_t>& hidden,
                                     std::int64_t output);

}  // namespace hf
