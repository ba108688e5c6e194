// Server side cost of a row: Table::gather + apply against the bare prefetching loop (see
// table/table_bench.hpp), the de-duplication of a batch, and the initialisation of a table.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.hpp"
#include "table/table_bench.hpp"
#include "table/unique.hpp"

namespace {

constexpr std::uint32_t kIdsPerCall = 30'000;
constexpr std::uint32_t kCalls = 8;

template <void (hf::GatherApplyWorkload::*Run)(std::size_t)>
void gather_apply(benchmark::State& state) {
  hf::GatherApplyWorkload work(static_cast<std::uint64_t>(state.range(0)), 16, kIdsPerCall, kCalls);
  std::size_t call = 0;
  for (auto _ : state) (work.*Run)(call++ % kCalls);
  state.counters["distance"] = static_cast<double>(work.prefetch_distance());
  state.SetItemsProcessed(state.iterations() * kIdsPerCall);
}
BENCHMARK(gather_apply<&hf::GatherApplyWorkload::run_bare>)->Name("bare")->Arg(1'000'000)->Arg(10'000'000);
BENCHMARK(gather_apply<&hf::GatherApplyWorkload::run_table>)->Name("table")->Arg(1'000'000)->Arg(10'000'000);

void interleaved(benchmark::State& state) {
  hf::GatherApplyResult result{};
  for (auto _ : state)
    result = hf::bench_gather_apply(static_cast<std::uint64_t>(state.range(0)), 16, kIdsPerCall, 15);
  state.counters["bare_ns_per_row"] = result.bare_ns_per_row;
  state.counters["table_ns_per_row"] = result.table_ns_per_row;
  state.counters["ratio"] = result.ratio;
}
BENCHMARK(interleaved)->Arg(1'000'000)->Arg(10'000'000)->Iterations(1)->Unit(benchmark::kMillisecond);

void unique_ids(benchmark::State& state) {
  hf::SplitMix64 random(3);
  std::vector<hf::RowId> ids(53'000);
  for (auto& id : ids) id = hf::mix64(random() % 29'000);  // about 24,000 distinct ones
  hf::UniqueIds unique_ids;
  std::vector<hf::RowId> unique;
  std::vector<std::uint32_t> inverse;
  for (auto _ : state) {
    unique_ids.build(ids, unique, inverse);
    benchmark::DoNotOptimize(inverse.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ids.size()));
  state.counters["unique"] = static_cast<double>(unique.size());
}
BENCHMARK(unique_ids)->Unit(benchmark::kMicrosecond);

void construct(benchmark::State& state) {
  hf::TableSpec spec;
  spec.name = "t";
  spec.rows = 10'000'000;
  spec.dim = 16;
  spec.init.kind = static_cast<hf::InitKind>(state.range(0));
  std::vector<hf::ShardId> shards;
  for (std::uint32_t s = 0; s < 64; ++s) shards.emplace_back(s);
  for (auto _ : state) benchmark::DoNotOptimize(std::make_unique<hf::Table>(spec, 64, shards));
}
BENCHMARK(construct)
    ->ArgName("init")
    ->Arg(static_cast<int>(hf::InitKind::zeros))
    ->Arg(static_cast<int>(hf::InitKind::uniform))
    ->Arg(static_cast<int>(hf::InitKind::normal))
    ->Unit(benchmark::kMillisecond);

void dynamic_gather(benchmark::State& state) {
  hf::TableSpec spec;
  spec.name = "t";
  spec.kind = hf::TableKind::dynamic;
  spec.dim = 16;
  std::vector<hf::ShardId> shards;
  for (std::uint32_t s = 0; s < 64; ++s) shards.emplace_back(s);
  hf::Table table(spec, 64, shards);
  const auto rows = static_cast<std::uint64_t>(state.range(0));
  std::vector<hf::RowId> ids(kIdsPerCall);
  std::vector<float> out(std::size_t{kIdsPerCall} * 16);
  for (std::uint64_t i = 0; i < rows; i += kIdsPerCall) {
    for (std::uint64_t j = 0; j < kIdsPerCall; ++j) ids[j] = hf::mix64(i + j);
    table.gather(ids, out.data(), true);
  }
  hf::SplitMix64 random(5);
  for (auto _ : state) {
    state.PauseTiming();
    for (auto& id : ids) id = hf::mix64(random() % rows);
    state.ResumeTiming();
    table.gather(ids, out.data(), true);
  }
  state.SetItemsProcessed(state.iterations() * kIdsPerCall);
}
BENCHMARK(dynamic_gather)->Arg(1'000'000)->Arg(10'000'000);

}  // namespace

BENCHMARK_MAIN();
