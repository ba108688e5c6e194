// Initial values of dense parameters: a function of the seed and the order of the calls, and of nothing else.
// Invariants: LibTorch's global generator is neither read nor advanced.
// Threading: belongs to one thread.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace hf {

class Initializer {
 public:
  explicit Initializer(std::uint64_t seed);

  /// Uniform in ±1/sqrt(fan_in), what torch::nn::Linear starts its weight and bias with (Kaiming uniform with
  /// a = sqrt 5). Source: He et al. 2015, eq. 10; LeCun et al. 1998.
  torch::Tensor linear_weight(std::int64_t out, std::int64_t in);
  torch::Tensor linear_bias(std::int64_t out, std::int64_t fan_in);

  /// Normal with variance 2 / (in + out). Source: Glorot & Bengio 2010, eq. 12.
  torch::Tensor xavier_normal(std::int64_t out, std::int64_t in);

 private:
  torch::Tensor uniform(std::vector<std::int64_t> shape, std::int64_t fan_in);

  at::Generator generator_;
};

}  // namespace hf
