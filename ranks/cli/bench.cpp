#include "ranks/cli/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "comm/abort.hpp"
#include "comm/mpi.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
#include "core/units.hpp"
#include "io/atomic_file.hpp"
#include "ranks/api/context.hpp"
#include "ranks/worker/report.hpp"
#include "ranks/worker/train_benchmark.hpp"
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
  run_train_benchmark(r.rows, r.dim, r.repeat, r.steps, group, mark);
  std::vector<double> rate, cpu_per_million;
  const double samples = static_cast<double>(r.steps) * kTrainBenchmarkBatch * group.num_workers();
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
