#include "ranks/worker/train_benchmark.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "core/random.hpp"
#include "model/interactions.hpp"
#include "model/mlp.hpp"
#include "ranks/worker/batch_pipeline.hpp"
#include "ranks/worker/session.hpp"

namespace hf {
namespace {

constexpr std::uint64_t kFeatures = 26;
constexpr std::size_t kDense = 13, kBatchesInMemory = 40;

/// Batches made ahead, given again and again: the loop reads nothing from disk, as the reference it is
/// compared with.
class MemoryStream final : public BatchStream {
 public:
  MemoryStream(std::uint64_t rows, std::uint64_t seed, std::size_t batches) : left_(batches) {
    const std::uint64_t per_feature = rows / kFeatures;
    std::vector<double> cumulative(per_feature);
    double sum = 0;
    for (std::uint64_t i = 0; i < per_feature; ++i)
      cumulative[i] = sum += std::pow(static_cast<double>(i + 1), -1.05);
    SplitMix64 random(seed);
    batches_.resize(kBatchesInMemory);
    for (Batch& b : batches_) {
      b.rows = kTrainBenchmarkBatch;
      b.num_dense = kDense;
      for (std::size_t i = 0; i < kTrainBenchmarkBatch * kDense; ++i)
        b.dense.push_back(uniform_float(random()));
      for (std::size_t i = 0; i < kTrainBenchmarkBatch; ++i)
        b.labels.push_back(uniform_float(random()) < 0.25F ? 1.0F : 0.0F);
      b.sparse.resize(kFeatures);
      // One table with the features' ids side by side, as the reference's one nn.Embedding.
      for (std::uint64_t f = 0; f < kFeatures; ++f) {
        for (std::size_t i = 0; i < kTrainBenchmarkBatch; ++i) {
          const double u = uniform_double(random()) * sum;
          const auto rank = static_cast<std::uint64_t>(
              std::lower_bound(cumulative.begin(), cumulative.end(), u) - cumulative.begin());
          b.sparse[f].ids.push_back(f * per_feature + std::min(rank, per_feature - 1));
        }
      }
    }
  }
  bool next(Batch& out) override {
    if (left_ == 0) return false;
    --left_;
    out = batches_[left_ % batches_.size()];
    return true;
  }
  StreamStats stats() const override { return {}; }

 private:
  std::vector<Batch> batches_;
  std::size_t left_;
};

}  // namespace

void run_train_benchmark(std::uint64_t rows, std::uint32_t dim, std::uint32_t repetitions,
                         std::uint32_t steps_each, ProcessGroup& group, const std::function<void()>& mark) {
  CollectionTable table;
  table.name = "bench";
  table.rows = rows;
  table.dim = dim;
  table.init = {.kind = InitKind::normal, .scale = 1.0F};
  table.optimizer.learning_rate = 0.01F;
  CollectionGroup lookups;
  for (std::size_t f = 0; f < kFeatures; ++f) lookups.push_back({.input = f, .table = 0});
  DistributedEmbeddingCollection embeddings({table}, {lookups});
  Initializer init(42);
  Mlp mlp({.widths = mlp_widths(static_cast<std::int64_t>(kDense + kFeatures * dim), {400, 400, 400}, 1)},
          init);
  AsyncSGD optimizer(mlp.parameters(), 0.01);

  constexpr std::size_t kWarmUp = 10;
  const std::size_t steps = kWarmUp + std::size_t{repetitions} * steps_each;
  BatchPipeline batches(
      std::make_unique<MemoryStream>(rows, 1 + static_cast<std::uint64_t>(group.worker_id()), steps),
      embeddings);
  std::unique_ptr<ReadyBatch> current = batches.next();
  embeddings.initiate_pull(*current->made);
  std::size_t done = 0;
  while (current) {
    if (done >= kWarmUp && (done - kWarmUp) % steps_each == 0) mark();
    std::unique_ptr<ReadyBatch> next = batches.next();
    if (next) embeddings.initiate_pull(*next->made, 1);
    const std::vector<torch::Tensor> looked_up = embeddings.forward(*current->made);
    const torch::Tensor logits =
        mlp.forward(concat_features(looked_up, dense_tensor(current->data))).squeeze(1);
    torch::binary_cross_entropy_with_logits(logits, label_tensor(current->data), {}, {},
                                            torch::Reduction::Sum)
        .backward();
    optimizer.step(static_cast<double>(current->data.rows));
    optimizer.zero_grad();
    batches.recycle(std::move(current));
    current = std::move(next);
    ++done;
  }
  mark();
  group.synchronize();
}

}  // namespace hf
