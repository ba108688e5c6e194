#include "ranks/worker/session.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <iostream>

#include "comm/mpi.hpp"
#include "core/log.hpp"
#include "io/dataset.hpp"
#include "model/learning_rate.hpp"

namespace hf {

void agree(const std::string& problem, ExitCode code) {
  const Communicator world = Communicator::world();
  const auto texts =
      world.all_gather(problem.empty() ? "" : std::to_string(static_cast<int>(code)) + "\n" + problem,
                       "all ranks to check the set-up");
  std::string list;
  int exit_code = 0;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (texts[r].empty()) continue;
    const std::size_t line = texts[r].find('\n');
    exit_code = std::max(exit_code, std::stoi(texts[r].substr(0, line)));
    const std::string text = texts[r].substr(line + 1);
    // The same problem on every rank is one problem; others are shown with the first rank that has them.
    if (list.find(text) != std::string::npos) continue;
    const bool everywhere =
        std::all_of(texts.begin(), texts.end(), [&](const std::string& t) { return t == texts[r]; });
    list += (everywhere || texts.size() == 1 ? "" : "rank " + std::to_string(r) + ": ") + text + "\n";
  }
  if (list.empty()) return;
  if (world.rank() == 0) std::cerr << "hyperframes: " << list << std::flush;
  throw AgreedError(static_cast<ExitCode>(exit_code), list);
}

Plan make_plan(const Config& config) {
  Plan plan;
  plan.config = config;
  const DataDescription description = describe_data(config);
  plan.schema = make_schema(config, description.vocabulary_sizes);
  plan.embeddings = make_embedding_plan(config, plan.schema);
  return plan;
}

ProcessGroupOptions group_options(const Config& config) {
  const ClusterConfig& c = config.cluster;
  ProcessGroupOptions o;
  if (c.role != RoleChoice::automatic) o.role = to_string(c.role);
  o.ps = c.ps;
  o.ps_ratio = c.ps_ratio;
  o.packed_placement = c.ps_placement == Placement::packed;
  o.num_shards = c.num_shards;
  o.transport = to_string(c.transport);
  o.buffer_pool_size = c.buffer_pool_size;
  o.staleness_bound = config.train.staleness_bound;
  o.wait_timeout_seconds = c.wait_timeout_seconds;
  o.compute_threads = config.train.threads;
  return o;
}

namespace {

DistributedEmbeddingCollection make_collection(const EmbeddingPlan& plan) {
  std::vector<CollectionTable> tables;
  for (const TableSpec& t : plan.tables)
    tables.push_back({.name = t.name,
                      .kind = t.kind,
                      .rows = t.rows,
                      .dim = t.dim,
                      .init = t.init,
                      .optimizer = t.optimizer});
  std::vector<CollectionGroup> groups;
  for (const LookupGroup& g : plan.groups) {
    CollectionGroup group;
    for (const Lookup& l : g.lookups)
      group.push_back({.input = l.feature, .table = l.table, .mean = l.pooling == Pooling::mean});
    groups.push_back(std::move(group));
  }
  return {std::move(tables), std::move(groups)};
}

}  // namespace

WorkerModel::WorkerModel(const Plan& plan)
    : network(make_model(plan.config, plan.schema)),
      embeddings(make_collection(plan.embeddings)),
      optimizer(std::make_unique<AsyncOptimizer>(network->parameters(), plan.config.optimizer.optimizer)) {
  optimizer->set_clip_norm(plan.config.optimizer.clip_norm);
  optimizer->set_schedule(
      [config = plan.config.optimizer](std::uint64_t step) { return learning_rate_factor(config, step); });
}

torch::Tensor dense_tensor(const Batch& batch) {
  return torch::from_blob(const_cast<float*>(batch.dense.data()),
                          {static_cast<std::int64_t>(batch.rows), static_cast<std::int64_t>(batch.num_dense)},
                          torch::kFloat32);
}
torch::Tensor label_tensor(const Batch& batch) {
  return torch::from_blob(const_cast<float*>(batch.labels.data()),
                          {static_cast<std::int64_t>(batch.labels.size())}, torch::kFloat32);
}

Usage usage() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {seconds(r.ru_utime) + seconds(r.ru_stime), static_cast<std::uint64_t>(r.ru_maxrss) * 1024};
}

}  // namespace hf
