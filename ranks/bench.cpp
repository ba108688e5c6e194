#include "ranks/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "api/context.hpp"
#include "comm/abort.hpp"
#include "comm/mpi.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
#include "core/units.hpp"
#include "io/atomic_file.hpp"
#include "model/interactions.hpp"
#include "model/mlp.hpp"
#include "ranks/batch_pipeline.hpp"
#include "ranks/report.hpp"
#include "table/table_bench.hpp"

namespace hf {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n == 0 ? NAN : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

nlohmann::json bench_gather(const BenchRequest& r) {
  const GatherApplyResult g =
      bench_gather_apply(r.rows, r.dim, 30'000, static_cast<int>(std::max(5u, r.repeat)));
  return {{"rows", r.rows},
          {"dim", r.dim},
          {"bare_ns_per_row", g.bare_ns_per_row},
          {"table_ns_per_row", g.table_ns_per_row},
          {"ratio", g.ratio}};
}

/// `count` different ids in a random order.
std::vector<RowId> distinct_ids(std::uint64_t rows, std::size_t count, std::uint64_t seed) {
  std::vector<RowId> ids;
  SplitMix64 random(seed);
  std::vector<bool> taken(rows, false);
  while (ids.size() < std::min<std::size_t>(count, rows)) {
    const RowId id = random() % rows;
    if (taken[id]) continue;
    taken[id] = true;
    ids.push_back(id);
  }
  return ids;
}

nlohmann::json bench_pull(const BenchRequest& r, ProcessGroup& group) {
  Context& context = *group.context();
  TableSpec spec;
  spec.name = "bench";
  spec.rows = r.rows;
  spec.dim = r.dim;
  const TableId table = context.client().create_table(spec);
  constexpr std::size_t kRows = 30'000;
  const auto ids = distinct_ids(r.rows, kRows, 7 + static_cast<std::uint64_t>(group.worker_id()));
  std::vector<float> out(ids.size() * r.dim);
  const auto round = [&] {
    context.client().complete_pull(context.client().initiate_pull(table, ids, out.data(), 0, kPullUngated));
  };
  for (int i = 0; i < 20; ++i) round();
  std::vector<double> ns;
  for (std::uint32_t i = 0; i < std::max(5u, r.repeat); ++i) {
    const auto start = Clock::now();
    constexpr int kRounds = 50;
    for (int k = 0; k < kRounds; ++k) round();
    ns.push_back(since(start) / kRounds / static_cast<double>(ids.size()) * 1e9);
  }
  return {{"rows_per_pull", ids.size()}, {"dim", r.dim}, {"ns_per_row", median(ns)}};
}

// ----------------------------------------------------------------------------------- end to end

constexpr std::uint64_t kFeatures = 26;
constexpr std::size_t kDense = 13, kBatch = 2048, kBatchesInMemory = 40;

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
      b.rows = kBatch;
      b.num_dense = kDense;
      for (std::size_t i = 0; i < kBatch * kDense; ++i) b.dense.push_back(uniform_float(random()));
      for (std::size_t i = 0; i < kBatch; ++i)
        b.labels.push_back(uniform_float(random()) < 0.25F ? 1.0F : 0.0F);
      b.sparse.resize(kFeatures);
      // One table with the features' ids side by side, as the reference's one nn.Embedding.
      for (std::uint64_t f = 0; f < kFeatures; ++f) {
        for (std::size_t i = 0; i < kBatch; ++i) {
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

/// What a worker does (ranks/worker.cpp), with the reference's model; `mark` is called at the start and after
/// each repetition, with all workers together.
void train_loop(const BenchRequest& r, ProcessGroup& group, const std::function<void()>& mark) {
  CollectionTable table;
  table.name = "bench";
  table.rows = r.rows;
  table.dim = r.dim;
  table.init = {.kind = InitKind::normal, .scale = 1.0F};
  table.optimizer.learning_rate = 0.01F;
  CollectionGroup lookups;
  for (std::size_t f = 0; f < kFeatures; ++f) lookups.push_back({.input = f, .table = 0});
  DistributedEmbeddingCollection embeddings({table}, {lookups});
  Initializer init(42);
  Mlp mlp({.widths = mlp_widths(static_cast<std::int64_t>(kDense + kFeatures * r.dim), {400, 400, 400}, 1)},
          init);
  AsyncSGD optimizer(mlp.parameters(), 0.01);

  constexpr std::size_t kWarmUp = 10;
  const std::size_t steps = kWarmUp + std::size_t{r.repeat} * r.steps;
  BatchPipeline batches(
      std::make_unique<MemoryStream>(r.rows, 1 + static_cast<std::uint64_t>(group.worker_id()), steps),
      embeddings);
  std::unique_ptr<ReadyBatch> current = batches.next();
  embeddings.initiate_pull(*current->ids);
  std::size_t done = 0;
  while (current) {
    if (done >= kWarmUp && (done - kWarmUp) % r.steps == 0) mark();
    std::unique_ptr<ReadyBatch> next = batches.next();
    if (next) embeddings.initiate_pull(*next->ids, 1);
    const std::vector<torch::Tensor> rows = embeddings.forward(*current->ids);
    const torch::Tensor logits = mlp.forward(concat_features(rows, dense_tensor(current->data))).squeeze(1);
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

nlohmann::json bench_train(const BenchRequest& r, ProcessGroup& group) {
  Context& context = *group.context();
  std::vector<double> wall, cpu;
  const auto mark = [&] {
    context.client().flush();
    group.barrier("all workers to meet between repetitions");
    std::vector<double> sum = {usage().cpu_seconds};
    // The service threads of ps ranks tell theirs; those of hybrids are in their process's figure already.
    if (group.worker_id() == 0) {
      const auto answers = context.client().command(R"({"op": "statistics"})");
      for (std::size_t s = 0; s < answers.size(); ++s)
        if (!context.roles.is_worker(context.roles.server_ranks[s]))
          sum[0] += nlohmann::json::parse(answers[s]).at("cpu_seconds").get<double>();
    }
    group.all_reduce_sum(sum, "all ranks' CPU seconds");
    cpu.push_back(sum[0]);
    wall.push_back(std::chrono::duration<double>(Clock::now().time_since_epoch()).count());
  };
  train_loop(r, group, mark);
  std::vector<double> rate, cpu_per_million;
  const double samples = static_cast<double>(r.steps) * kBatch * group.num_workers();
  for (std::size_t i = 0; i + 1 < wall.size(); ++i) {
    rate.push_back(samples / (wall[i + 1] - wall[i]));
    cpu_per_million.push_back((cpu[i + 1] - cpu[i]) / samples * 1e6);
  }
  return {{"rows", r.rows},
          {"roles", group.roles()},
          {"transport", group.transport()},
          {"samples_per_second", median(rate)},
          {"cpu_seconds_per_million", median(cpu_per_million)},
          {"repetitions", rate}};
}

nlohmann::json bench_idle(const BenchRequest&, ProcessGroup& group) {
  // The CPU seconds of the servers' service threads while no worker asks anything.
  constexpr double kSeconds = 3;
  const auto cpu = [&] {
    double sum = 0;
    for (const std::string& answer : group.context()->client().command(R"({"op": "statistics"})"))
      sum += nlohmann::json::parse(answer).at("cpu_seconds").get<double>();
    return sum;
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double before = cpu();
  std::this_thread::sleep_for(std::chrono::duration<double>(kSeconds));
  const double used = cpu() - before;
  return {{"seconds", kSeconds},
          {"servers", group.num_servers()},
          {"core_share_per_server", used / kSeconds / group.num_servers()}};
}

}  // namespace

int run_bench(const BenchRequest& r) {
  const std::vector<std::string> names = r.name == "all"
                                             ? std::vector<std::string>{"gather", "pull", "idle", "train"}
                                             : std::vector<std::string>{r.name};
  // Two calls' worth of different rows, and at least one row for each feature.
  constexpr std::uint64_t kLeastRows = 60'000;
  if (r.rows < kLeastRows)
    throw ConfigError("--rows: expected at least " + std::to_string(kLeastRows) + ", found " +
                      std::to_string(r.rows));
  try {
    const MpiSession session;
    init_log(session.rank(), "");
    try {
      nlohmann::json results = nlohmann::json::object();
      if (std::count(names.begin(), names.end(), "gather") > 0 && session.rank() == 0)
        results["gather"] = bench_gather(r);
      if (names != std::vector<std::string>{"gather"}) {
        Config config;
        config.cluster = r.cluster;
        config.train.threads = r.threads;
        config.train.staleness_bound = r.staleness_bound;
        const auto group = init_process_group(group_options(config));
        if (group->is_worker()) {
          for (const std::string& name : names) {
            if (name == "pull") {
              auto result = bench_pull(r, *group);
              group->barrier("all workers to finish the pull benchmark");
              results[name] = std::move(result);
            }
            if (name == "idle" && group->worker_id() == 0) results[name] = bench_idle(r, *group);
            if (name == "idle") group->barrier("worker 0 to finish the idle benchmark");
            if (name == "train") results[name] = bench_train(r, *group);
          }
        } else {
          group->serve();
        }
        const bool report = group->is_worker() && group->worker_id() == 0;
        destroy_process_group();
        if (!report) return 0;
      } else if (session.rank() != 0) {
        return 0;
      }
      std::cout << results.dump(2) << std::endl;
      if (!r.json.empty() && r.json != "-") write_json_file(r.json, results);
    } catch (const std::exception& e) {
      abort_job(e);
    }
    return 0;
  } catch (const std::exception& e) {
    abort_job(e);
  }
}

}  // namespace hf
