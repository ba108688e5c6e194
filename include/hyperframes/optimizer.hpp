// Optimizers whose parameters live on the servers: step() pushes gradients (dense parameters and the rows of every
// embedding used since the last step) and pulls the dense parameters for the next step.
//
// The update itself is done by the servers, with the optimizer's usual formula (see table/optimizer.hpp):
//   AsyncSGD      w -= lr·g
//   AsyncAdagrad  as torch::optim::Adagrad
//   AsyncAdam     as torch::optim::Adam, t = the step of the push
// Several workers: with staleness bound 0 the servers apply one update per step from Σ gradients / Σ weights;
// otherwise each worker's gradients / weight when they arrive.
// Threading: one thread.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <vector>

#include "hyperframes/table_options.hpp"

namespace hf {

class AsyncOptimizer {
 public:
  /// Collective over workers: worker 0's parameter values become everybody's.
  AsyncOptimizer(std::vector<torch::Tensor> parameters, const OptimizerSpec& spec);
  ~AsyncOptimizer();
  AsyncOptimizer(const AsyncOptimizer&) = delete;
  AsyncOptimizer& operator=(const AsyncOptimizer&) = delete;

  void zero_grad();

  /// Pushes, advances this worker's clock, pulls. `weight`: 1 for a loss that is a mean over the batch, the number of
  /// examples for a loss that is a sum.
  void step(double weight = 1.0);
  /// Advances the clock without pushing anything (a rejected batch).
  void skip_step();

  /// False when a gradient that step() would push is NaN or infinite.
  bool gradients_finite() const;

  /// Factor of every learning rate (dense and rows) as a function of the step, 0-based. Default 1.
  void set_schedule(std::function<double(std::uint64_t)> factor);
  /// Clips the global norm of (gradient / weight) over dense parameters and rows of this worker; 0 = off.
  void set_clip_norm(double norm);
  /// Steps done by this worker's clock.
  std::uint64_t steps() const noexcept;
  /// Fetches the current dense parameters (after synchronize() or a load).
  void pull_parameters();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct AsyncSGD : AsyncOptimizer {
  AsyncSGD(std::vector<torch::Tensor> parameters, double learning_rate, double weight_decay = 0.0);
};
struct AsyncAdagrad : AsyncOptimizer {
  AsyncAdagrad(std::vector<torch::Tensor> parameters, double learning_rate, double epsilon = 1e-10,
               double initial_accumulator = 0.0, double weight_decay = 0.0);
};
struct AsyncAdam : AsyncOptimizer {
  AsyncAdam(std::vector<torch::Tensor> parameters, double learning_rate, double beta1 = 0.9,
            double beta2 = 0.999, double epsilon = 1e-8, double weight_decay = 0.0);
};

}  // namespace hf
