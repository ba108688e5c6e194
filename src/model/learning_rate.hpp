// The learning-rate schedule of a run: one factor for every learning rate, dense and rows.
// Threading: pure function.
#pragma once

#include "core/config.hpp"
#include "core/types.hpp"

namespace hf {

/// Factor of the learning rates at a step (0 = the first).
///   step <  warmup_steps: (step + 1) / warmup_steps, so that the first step already learns
///   step >= warmup_steps: with p = (step - warmup_steps) / (decay_steps - warmup_steps), at most 1,
///     linear       1 + (decay_final - 1) · p
///     cosine       decay_final + (1 - decay_final) · (1 + cos πp) / 2      Source: Loshchilov & Hutter 2017,
///     eq. 5 exponential  decay_final ^ ((step - warmup_steps) / decay_steps), without end
/// A decay whose decay_steps does not lie after the warm-up has ended when the warm-up ends; an exponential
/// decay with decay_steps 0 stays at 1.
double learning_rate_factor(const DenseOptimizerConfig& config, Step step);

}  // namespace hf
