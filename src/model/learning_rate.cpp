#include "model/learning_rate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hf {

double learning_rate_factor(const DenseOptimizerConfig& config, Step step) {
  if (step < config.warmup_steps)
    return static_cast<double>(step + 1) / static_cast<double>(config.warmup_steps);
  const auto since = static_cast<double>(step - config.warmup_steps);
  const double progress =
      config.decay_steps > config.warmup_steps
          ? std::min(1.0, since / static_cast<double>(config.decay_steps - config.warmup_steps))
          : 1.0;
  switch (config.decay) {
    case DecayKind::none:
      return 1.0;
    case DecayKind::linear:
      return 1.0 + (config.decay_final - 1.0) * progress;
    case DecayKind::cosine:
      return config.decay_final +
             (1.0 - config.decay_final) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    case DecayKind::exponential:
      return config.decay_steps == 0
                 ? 1.0
                 : std::pow(config.decay_final, since / static_cast<double>(config.decay_steps));
  }
  return 1.0;
}

}  // namespace hf
