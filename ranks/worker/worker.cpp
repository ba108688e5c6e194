#include "ranks/worker/worker.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/log.hpp"
#include "core/units.hpp"
#include "ranks/api/context.hpp"
#include "ranks/worker/batch_pipeline.hpp"
#include "ranks/worker/checkpointing.hpp"
#include "ranks/worker/progress.hpp"

namespace hf {

Worker::Worker(const Plan& plan, ProcessGroup& group)
    : plan_(plan), group_(group), model_(plan), progress_(std::make_unique<Progress>(group, plan.config)) {
  model_.network->train();
}

Worker::~Worker() = default;

WorkerReport Worker::train() {
  const auto start = std::chrono::steady_clock::now();
  for (std::uint32_t epoch = 0; epoch < plan_.config.train.epochs; ++epoch) train_epoch(epoch);
  report_.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  finish();
  return report_;
}

void Worker::train_epoch(std::uint32_t epoch) {
  const TrainConfig& config = plan_.config.train;
  BatchPipeline batches(open_stream(plan_.config, plan_.schema,
                                    {.split = Split::train,
                                     .batch_size = config.batch_size,
                                     .worker = static_cast<std::uint32_t>(group_.worker_id()),
                                     .num_workers = static_cast<std::uint32_t>(group_.num_workers()),
                                     .epoch = epoch}),
                        model_.embeddings);
  expect_samples(batches.total_rows_hint());

  const auto next_batch = [&](std::uint64_t after) {
    const bool limit_reached = config.max_steps > 0 && steps_ + after >= config.max_steps;
    return limit_reached ? nullptr : batches.next();
  };
  bool more = true;  // somebody has data
  std::unique_ptr<ReadyBatch> current = next_batch(0);
  if (current && config.pipeline) model_.embeddings.initiate_pull(*current->made);
  while (current) {
    std::unique_ptr<ReadyBatch> next = next_batch(1);
    if (next && config.pipeline) model_.embeddings.initiate_pull(*next->made, 1);
    learn(*current, epoch);
    batches.recycle(std::move(current));
    current = std::move(next);
    if (config.eval_every_steps > 0 && steps_ % config.eval_every_steps == 0)
      more = meet(epoch, current != nullptr);
  }
  bad_rows_ = std::max(bad_rows_, batches.stats().bad_rows);
  // Who has no more data takes part in the others' evaluations until nobody has any.
  while (more) more = meet(epoch, false);
}

void Worker::expect_samples(std::uint64_t rows_per_epoch) {
  const TrainConfig& config = plan_.config.train;
  std::uint64_t samples = rows_per_epoch * config.epochs;
  const std::uint64_t limit =
      config.max_steps * config.batch_size * static_cast<std::uint64_t>(group_.num_workers());
  if (limit > 0) samples = samples > 0 ? std::min(samples, limit) : limit;
  progress_->expect(samples);
}

void Worker::learn(ReadyBatch& batch, std::uint32_t epoch) {
  const auto rows = static_cast<double>(batch.data.rows);
  const torch::Tensor labels = label_tensor(batch.data);
  const std::vector<torch::Tensor> rows_of_groups = model_.embeddings.forward(*batch.made);
  if (batch.data.rows == 0) {  // a block of malformed rows only
    ++steps_;
    model_.optimizer->skip_step();
    return;
  }
  const torch::Tensor logits = model_.network->forward(dense_tensor(batch.data), rows_of_groups);
  const torch::Tensor loss =
      torch::binary_cross_entropy_with_logits(logits, labels, {}, {}, torch::Reduction::Sum);
  const double loss_value = loss.item<double>();
  ++steps_;
  if (!std::isfinite(loss_value)) {
    reject("loss");
  } else {
    loss.backward();
    if (!model_.optimizer->gradients_finite()) {
      reject("gradient");
    } else {
      model_.optimizer->step(rows);
      const torch::Tensor scores = logits.detach().contiguous();
      const std::span<const float> values(scores.data_ptr<float>(), batch.data.rows);
      train_metrics_.add(values, batch.data.labels);
      recent_.add(values, batch.data.labels);
      samples_ += batch.data.rows;
      loss_sum_ += loss_value;
    }
  }
  model_.optimizer->zero_grad();
  const ClientCounters& c = group_.context()->client().counters();
  progress_->step({.samples = samples_,
                   .steps = steps_,
                   .loss_sum = loss_sum_,
                   .bytes_pushed = c.bytes_pushed,
                   .bytes_pulled = c.bytes_pulled,
                   .rejected_batches = rejected_},
                  recent_, epoch);
}

void Worker::reject(const char* what) {
  ++rejected_;
  spdlog::warn("step {}: the {} is NaN or infinite; the batch is rejected ({} so far)", steps_ - 1, what,
               rejected_);
  if (rejected_ > plan_.config.train.max_bad_batches)
    throw TooManyFailures(std::to_string(rejected_) +
                          " batches had a NaN or infinite loss or gradient (train.max_bad_batches: " +
                          std::to_string(plan_.config.train.max_bad_batches) +
                          "); a smaller learning rate, optimizer.clip_norm or scaled features (log1p, "
                          "standardize) usually help");
  model_.optimizer->skip_step();
}

/// All workers, with everything applied: evaluation. False when nobody has data left.
bool Worker::meet(std::uint32_t epoch, bool have_data) {
  const auto start = std::chrono::steady_clock::now();
  group_.synchronize();
  std::vector<double> left = {have_data ? 1.0 : 0.0};
  group_.all_reduce_sum(left, "all workers to say whether they have data");
  if (has_split(plan_.config, Split::validation)) {
    model_.optimizer->pull_parameters();
    report_.validation = evaluate(plan_, group_, model_, Split::validation);
    progress_->evaluated("validation", *report_.validation, epoch, group_.context()->step);
    group_.barrier("all workers to finish the evaluation");
  }
  evaluation_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return left[0] > 0;
}

void Worker::finish() {
  const ClientCounters c = group_.context()->client().counters();
  std::vector<double> sums = {static_cast<double>(samples_),
                              static_cast<double>(steps_),
                              static_cast<double>(bad_rows_),
                              static_cast<double>(rejected_),
                              static_cast<double>(c.bytes_pushed),
                              static_cast<double>(c.bytes_pulled),
                              static_cast<double>(c.rows_pushed),
                              static_cast<double>(c.rows_pulled),
                              c.wait_seconds};
  group_.all_reduce_sum(sums, "all workers' counts");
  const auto count = [&](std::size_t i) { return static_cast<std::uint64_t>(sums[i]); };
  report_.samples = count(0);
  report_.steps = count(1);
  report_.bad_rows = count(2);
  report_.rejected_batches = count(3);
  report_.bytes_pushed = count(4);
  report_.bytes_pulled = count(5);
  report_.rows_pushed = count(6);
  report_.rows_pulled = count(7);
  report_.wait_seconds = sums[8];
  report_.epochs = plan_.config.train.epochs;
  report_.train_seconds = report_.wall_seconds - evaluation_seconds_;
  if (report_.bad_rows > plan_.config.data.max_bad_rows)
    throw DataError(std::to_string(report_.bad_rows) +
                    " malformed rows in the training data (data.max_bad_rows: " +
                    std::to_string(plan_.config.data.max_bad_rows) + ")");
  const auto parts = group_.gather(train_metrics_.serialize(), "all workers' training metrics");
  if (group_.worker_id() == 0) {
    for (std::size_t w = 1; w < parts.size(); ++w) train_metrics_.merge(parts[w]);
    report_.train = train_metrics_.result();
  }
  if (has_split(plan_.config, Split::test)) {
    model_.optimizer->pull_parameters();
    report_.test = evaluate(plan_, group_, model_, Split::test);
    progress_->evaluated("test", *report_.test, plan_.config.train.epochs - 1, group_.context()->step);
  }
  report_.checkpoint = save_checkpoint(plan_, group_, model_, plan_.config.checkpoint_dir);
}

}  // namespace hf
