// A worker: owns its share of the data and the computation.
//
//   for each batch of my share:
//     rows  ← pull(unique ids of the batch)          initiated while the batch before was computed
//     loss  ← model(dense features, rows)
//     push(∂loss/∂rows, ∂loss/∂dense parameters); clock += 1
//     dense ← pull(dense parameters)                 answered when the slowest worker is within the staleness bound
//
// Source: Li et al.: Scaling Distributed Machine Learning with the Parameter Server (OSDI 2014), Alg. 1; Ho et al.: More
// Effective Distributed ML via a Stale Synchronous Parallel Parameter Server (NIPS 2013).
// Threading: the main thread of a worker or hybrid rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ranks/worker/batch_pipeline.hpp"
#include "ranks/worker/evaluation.hpp"
#include "ranks/worker/session.hpp"

namespace hf {

class Progress;

/// Sums over all workers; the metrics are meaningful on worker 0.
struct WorkerReport {
  std::uint64_t samples = 0, steps = 0, epochs = 0;
  std::uint64_t bad_rows = 0, rejected_batches = 0;
  std::uint64_t bytes_pushed = 0, bytes_pulled = 0, rows_pushed = 0, rows_pulled = 0;
  double wait_seconds = 0;   ///< summed over workers
  double train_seconds = 0;  ///< without evaluation
  double wall_seconds = 0;
  MetricsResult train;  ///< progressive: each batch before it was learned from
  std::optional<Evaluation> validation, test;
  std::string checkpoint;
};

class Worker {
 public:
  Worker(const Plan& plan, ProcessGroup& group);
  ~Worker();
  /// Trains all epochs, evaluates, saves. Collective over workers.
  /// Throws: DataError, IoError; TooManyFailures when more batches than allowed had a NaN or infinite loss or gradient.
  WorkerReport train();

 private:
  void train_epoch(std::uint32_t epoch);
  void expect_samples(std::uint64_t rows_per_epoch);
  void learn(ReadyBatch& batch, std::uint32_t epoch);
  void reject(const char* what);
  bool meet(std::uint32_t epoch, bool have_data);
  void finish();

  const Plan& plan_;
  ProcessGroup& group_;
  WorkerModel model_;
  std::unique_ptr<Progress> progress_;
  Metrics train_metrics_;
  Metrics recent_{0};
  std::uint64_t samples_ = 0, steps_ = 0, rejected_ = 0, bad_rows_ = 0;
  double loss_sum_ = 0, evaluation_seconds_ = 0;
  WorkerReport report_;
};

}  // namespace hf
