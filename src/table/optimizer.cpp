#include "table/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "table/optimizer_kernels.hpp"

namespace hf {

void init_optimizer_state(const OptimizerSpec& spec, std::uint32_t dim, const ApplyArgs& base,
                          float* record) noexcept {
  float* state = record + dim;
  switch (spec.kind) {
    case OptimizerKind::sgd:
      return;
    case OptimizerKind::adagrad:
    case OptimizerKind::rowwise_adagrad:
      std::fill_n(state, optimizer_slots(spec.kind, dim), spec.initial_accumulator);
      return;
    case OptimizerKind::adam:
      std::fill_n(state, 2 * static_cast<std::size_t>(dim), 0.0F);
      return;
    case OptimizerKind::ftrl: {
      // n = 0 and the solution of z is w: z = -w·(β/α + l2) - sign(w)·l1.
      const float curvature =
          base.learning_rate > 0.0F ? spec.ftrl_beta / base.learning_rate + spec.l2 : spec.l2;
      for (std::uint32_t i = 0; i < dim; ++i) {
        const float w = record[i];
        state[i] = w == 0.0F ? 0.0F : -w * curvature - std::copysign(spec.l1, w);
        state[dim + i] = 0.0F;
      }
      return;
    }
  }
}

void apply_row(const OptimizerSpec& spec, std::uint32_t dim, const ApplyArgs& args, const float* grad,
               float* record) noexcept {
  const kernels::StepParams p(spec, args);
  switch (spec.kind) {
    case OptimizerKind::sgd:
      return kernels::step_row<OptimizerKind::sgd, 0>(p, dim, grad, record);
    case OptimizerKind::adagrad:
      return kernels::step_row<OptimizerKind::adagrad, 0>(p, dim, grad, record);
    case OptimizerKind::rowwise_adagrad:
      return kernels::step_row<OptimizerKind::rowwise_adagrad, 0>(p, dim, grad, record);
    case OptimizerKind::adam:
      return kernels::step_row<OptimizerKind::adam, 0>(p, dim, grad, record);
    case OptimizerKind::ftrl:
      return kernels::step_row<OptimizerKind::ftrl, 0>(p, dim, grad, record);
  }
}

}  // namespace hf
