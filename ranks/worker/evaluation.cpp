#include "ranks/worker/evaluation.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>

#include "core/log.hpp"
#include "io/atomic_file.hpp"
#include "ranks/worker/batch_pipeline.hpp"

namespace hf {
namespace {

StreamOptions stream_options(const Plan& plan, const ProcessGroup& group, Split split, bool require_labels) {
  return {.split = split,
          .batch_size = plan.config.train.batch_size,
          .worker = static_cast<std::uint32_t>(group.worker_id()),
          .num_workers = static_cast<std::uint32_t>(group.num_workers()),
          .epoch = 0,
          .require_labels = require_labels};
}

/// Puts the network into evaluation mode for a while.
class EvalMode {
 public:
  explicit EvalMode(CtrModel& network) : network_(network) { network_.eval(); }
  ~EvalMode() { network_.train(); }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  CtrModel& network_;
};

/// The batches' logits, in turn, the next batch's rows on their way meanwhile.
template <class Visit>
void score(BatchPipeline& batches, WorkerModel& model, Visit&& visit) {
  std::unique_ptr<ReadyBatch> current = batches.next();
  if (current) model.embeddings.initiate_pull(*current->made);
  while (current) {
    std::unique_ptr<ReadyBatch> next = batches.next();
    if (next) model.embeddings.initiate_pull(*next->made);
    const torch::Tensor logits =
        model.network->forward(dense_tensor(current->data), model.embeddings.forward(*current->made))
            .contiguous();
    visit(current->data,
          std::span<const float>(logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel())));
    batches.recycle(std::move(current));
    current = std::move(next);
  }
}

}  // namespace

Evaluation evaluate(const Plan& plan, ProcessGroup& group, WorkerModel& model, Split split) {
  const auto start = std::chrono::steady_clock::now();
  const InferenceGuard inference;
  const EvalMode eval_mode(*model.network);
  BatchPipeline batches(open_stream(plan.config, plan.schema, stream_options(plan, group, split, true)),
                        model.embeddings);
  Metrics metrics;
  score(batches, model,
        [&](const Batch& batch, std::span<const float> logits) { metrics.add(logits, batch.labels); });
  Evaluation result;
  const auto parts = group.gather(metrics.serialize(),
                                  "all workers' scores of the " + std::string(to_string(split)) + " split");
  if (group.worker_id() == 0) {
    for (std::size_t w = 1; w < parts.size(); ++w) metrics.merge(parts[w]);
    result.metrics = metrics.result();
  }
  std::vector<double> sums = {static_cast<double>(batches.stats().bad_rows)};
  group.all_reduce_sum(sums, "all workers to count malformed rows");
  result.bad_rows = static_cast<std::uint64_t>(sums[0]);
  if (result.bad_rows > plan.config.data.max_bad_rows)
    throw DataError(std::to_string(result.bad_rows) + " malformed rows in the " + to_string(split) +
                    " split (data.max_bad_rows: " + std::to_string(plan.config.data.max_bad_rows) + ")");
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::uint64_t predict(const Plan& plan, ProcessGroup& group, WorkerModel& model, Split split,
                      const std::string& path) {
  const InferenceGuard inference;
  const EvalMode eval_mode(*model.network);
  // A malformed row would leave a hole whose place in the file nobody could tell.
  Plan strict = plan;
  strict.config.data.max_bad_rows = 0;
  BatchPipeline batches(open_stream(strict.config, strict.schema, stream_options(plan, group, split, false)),
                        model.embeddings);
  std::optional<AtomicFile> file;  // worker 0 alone: it goes away with its object
  std::ofstream out;
  if (group.worker_id() == 0) {
    file.emplace(path);
    out.open(file->temporary_path(), std::ios::trunc);
    if (!out) throw IoError("cannot write " + file->temporary_path() + ": " + std::strerror(errno));
    out << "row,probability\n";
  }
  // Blocks are dealt in turn, so after each round of some blocks per worker the scores so far are a prefix of the file.
  constexpr std::size_t kBlocksPerRound = 64;
  struct Score {
    std::uint64_t row;
    float logit;
  };
  std::vector<Score> mine;
  std::uint64_t written = 0;
  std::size_t blocks = 0;
  const auto meet = [&](bool done) {
    std::vector<std::byte> bytes(mine.size() * sizeof(Score));
    std::memcpy(bytes.data(), mine.data(), bytes.size());
    mine.clear();
    std::vector<Score> all;
    for (const auto& part : group.gather(bytes, "all workers' scores")) {
      const std::size_t at = all.size();
      all.resize(at + part.size() / sizeof(Score));
      std::memcpy(all.data() + at, part.data(), part.size());
    }
    std::sort(all.begin(), all.end(), [](const Score& a, const Score& b) { return a.row < b.row; });
    std::array<char, 64> line{};
    for (const Score& s : all) {
      const int n =
          std::snprintf(line.data(), line.size(), "%llu,%.9g\n", static_cast<unsigned long long>(s.row),
                        1.0 / (1.0 + std::exp(-static_cast<double>(s.logit))));
      out.write(line.data(), n);
    }
    written += all.size();
    std::vector<double> left = {done ? 0.0 : 1.0};
    group.all_reduce_sum(left, "all workers to finish a round of scores");
    return left[0] > 0;
  };
  bool more = true;
  score(batches, model, [&](const Batch& batch, std::span<const float> logits) {
    for (std::size_t i = 0; i < logits.size(); ++i) mine.push_back({batch.first_row + i, logits[i]});
    if (++blocks % kBlocksPerRound == 0) meet(false);
  });
  while (more) more = meet(true);
  if (group.worker_id() == 0) {
    out.close();
    if (!out) throw IoError("cannot write " + file->temporary_path() + ": " + std::strerror(errno));
    file->commit();
  }
  return written;
}

}  // namespace hf
