// Optimizers whose parameters live on the servers: step() pushes gradients (of the dense parameters, and of the rows that
// backward passes have reached since the last zero_grad()) and pulls the dense parameters for the next step. Gradients of
// several backward passes add up. One optimizer per process group: it owns the clock and the gradients of all rows.
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
  /// Throws: ConfigError for a second optimizer, and for parameters that are not float32 on the CPU.
  AsyncOptimizer(std::vector<torch::Tensor> parameters, const OptimizerSpec& spec);
  ~AsyncOptimizer();
  AsyncOptimizer(const AsyncOptimizer&) = delete;
  AsyncOptimizer& operator=(const AsyncOptimizer&) = delete;

  /// Forgets the gradients that are there, of parameters and rows. A forward whose backward comes later is not touched.
  void zero_grad();

  /// Pushes, advances this worker's clock, pulls. `weight`: 1 for a loss that is a mean over the batch, the number of
  /// examples for a loss that is a sum. Every step needs a zero_grad() before the next backward pass.
  /// Throws: ConfigError where gradients of an earlier step() are still there (PyTorch would apply them once more; here the
  /// rows' are gone, so that parameters and rows would follow different rules).
  void step(double weight = 1.0);
  /// Advances the clock without pushing anything (a rejected batch). The gradients stay until zero_grad().
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
