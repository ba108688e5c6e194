// The arithmetic of the row optimizers, in one place: the reference (`apply_row`) and the specialised loops
// of a table are instances of the same templates, so that their results are equal bit for bit. hf_table is
// compiled with -ffp-contract=off for the same reason: which products are fused must not depend on how a
// loop was vectorised.
// Threading: pure functions.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "core/table_spec.hpp"
#include "table/table.hpp"

namespace hf::kernels {

/// What one apply call needs, computed once for all its rows.
struct StepParams {
  StepParams(const OptimizerSpec& spec, const ApplyArgs& args) noexcept
      : lr(args.learning_rate),
        scale(args.grad_scale),
        weight_decay(spec.weight_decay),
        epsilon(spec.epsilon),
        beta1(spec.beta1),
        beta2(spec.beta2),
        l1(spec.l1),
        l2(spec.l2),
        ftrl_beta(spec.ftrl_beta) {
    if (spec.kind == OptimizerKind::adam) {
      const auto t = static_cast<double>(std::max<Step>(args.step, 1));
      adam_step = static_cast<float>(lr / (1.0 - std::pow(static_cast<double>(beta1), t)));
      adam_root = static_cast<float>(std::sqrt(1.0 - std::pow(static_cast<double>(beta2), t)));
    }
  }
  float lr, scale, weight_decay, epsilon, beta1, beta2, l1, l2, ftrl_beta;
  float adam_step = 0.0F, adam_root = 1.0F;  ///< lr / (1 - β1^t), √(1 - β2^t)
};

/// A fixed order of summation that vectorises: eight partial sums, then pairs.
template <std::uint32_t Dim>
inline float mean_square(const StepParams& p, std::uint32_t dim, const float* __restrict grad,
                         const float* __restrict w) noexcept {
  const std::uint32_t n = Dim != 0 ? Dim : dim;
  constexpr std::uint32_t kLanes = 8;
  std::array<float, kLanes> sum{};
  const std::uint32_t whole = n - n % kLanes;
  for (std::uint32_t i = 0; i < whole; i += kLanes)
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      const float g = grad[i + lane] * p.scale + p.weight_decay * w[i + lane];
      sum[lane] += g * g;
    }
  for (std::uint32_t lane = 0; lane < n % kLanes; ++lane) {
    const float g = grad[whole + lane] * p.scale + p.weight_decay * w[whole + lane];
    sum[lane] += g * g;
  }
  return (((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]))) /
         static_cast<float>(n);
}

/// One step on one record. Dim = 0: any dim, given at run time.
template <OptimizerKind Kind, std::uint32_t Dim>
inline void step_row(const StepParams& p, std::uint32_t dim, const float* __restrict grad,
                     float* __restrict record) noexcept {
  const std::uint32_t n = Dim != 0 ? Dim : dim;
  float* __restrict w = record;
  if constexpr (Kind == OptimizerKind::sgd) {
    for (std::uint32_t i = 0; i < n; ++i) w[i] -= p.lr * (grad[i] * p.scale + p.weight_decay * w[i]);
  } else if constexpr (Kind == OptimizerKind::adagrad) {
    float* __restrict sum = record + n;
    for (std::uint32_t i = 0; i < n; ++i) {
      const float g = grad[i] * p.scale + p.weight_decay * w[i];
      sum[i] += g * g;
      w[i] -= p.lr * g / (std::sqrt(sum[i]) + p.epsilon);
    }
  } else if constexpr (Kind == OptimizerKind::rowwise_adagrad) {
    record[n] += mean_square<Dim>(p, dim, grad, w);
    const float rate = p.lr / (std::sqrt(record[n]) + p.epsilon);
    for (std::uint32_t i = 0; i < n; ++i) w[i] -= rate * (grad[i] * p.scale + p.weight_decay * w[i]);
  } else if constexpr (Kind == OptimizerKind::adam) {
    float* __restrict m = record + n;
    float* __restrict v = record + 2 * static_cast<std::size_t>(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      const float g = grad[i] * p.scale + p.weight_decay * w[i];
      m[i] = p.beta1 * m[i] + (1.0F - p.beta1) * g;
      v[i] = p.beta2 * v[i] + (1.0F - p.beta2) * (g * g);
      w[i] -= p.adam_step * m[i] / (std::sqrt(v[i]) / p.adam_root + p.epsilon);
    }
  } else {
    if (!(p.lr > 0.0F)) return;  // alpha divides: a rate of 0 means no step
    float* __restrict z = record + n;
    float* __restrict nn = record + 2 * static_cast<std::size_t>(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      const float g = grad[i] * p.scale;
      const float old_root = std::sqrt(nn[i]);
      nn[i] += g * g;
      const float new_root = std::sqrt(nn[i]);
      z[i] += g - (new_root - old_root) / p.lr * w[i];
      const float shrunk = std::abs(z[i]) - p.l1;
      const float curvature = (p.ftrl_beta + new_root) / p.lr + p.l2;
      const float solution = std::copysign(shrunk, -z[i]) / curvature;
      w[i] = shrunk > 0.0F ? solution : 0.0F;
    }
  }
}

}  // namespace hf::kernels
