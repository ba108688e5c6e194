#include "model/initializer.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "core/random.hpp"

namespace hf {

Initializer::Initializer(std::uint64_t seed)
    : generator_(at::make_generator<at::CPUGeneratorImpl>(mix64(seed, /*dense parameters*/ 0xd5))) {}

torch::Tensor Initializer::uniform(std::vector<std::int64_t> shape, std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1)));
  return torch::empty(shape).uniform_(-bound, bound, generator_);
}

torch::Tensor Initializer::linear_weight(std::int64_t out, std::int64_t in) { return uniform({out, in}, in); }

torch::Tensor Initializer::linear_bias(std::int64_t out, std::int64_t fan_in) {
  return uniform({out}, fan_in);
}

torch::Tensor Initializer::xavier_normal(std::int64_t out, std::int64_t in) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(std::max<std::int64_t>(in + out, 1)));
  return torch::empty({out, in}).normal_(0.0, deviation, generator_);
}

}  // namespace hf
