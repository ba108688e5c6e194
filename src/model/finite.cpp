#include "model/finite.hpp"

#include <array>

namespace hf {
namespace {

// x * 0 is 0 for every finite x and NaN otherwise, and NaN survives a sum: no branch per element.
template <class T>
bool finite_range(const T* x, std::size_t n) noexcept {
  constexpr std::size_t kLanes = 32;
  std::array<T, kLanes> sum{};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) sum[j] += x[i + j] * T{0};
  for (; i < n; ++i) sum[0] += x[i] * T{0};
  T total{0};
  for (const T s : sum) total += s;
  return total == T{0};
}

}  // namespace

bool all_finite(const float* values, std::size_t count) noexcept { return finite_range(values, count); }

bool all_finite(const torch::Tensor& tensor) {
  if (!tensor.is_floating_point() || tensor.numel() == 0) return true;
  const auto t = tensor.detach().contiguous();
  const auto n = static_cast<std::size_t>(t.numel());
  if (t.scalar_type() == torch::kFloat) return finite_range(t.const_data_ptr<float>(), n);
  if (t.scalar_type() == torch::kDouble) return finite_range(t.const_data_ptr<double>(), n);
  return finite_range(t.to(torch::kFloat).const_data_ptr<float>(), n);
}

}  // namespace hf
