#include "table/table_bench.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "core/random.hpp"
#include "table/id_map.hpp"

namespace hf {
namespace {

constexpr std::uint32_t kShards = 64;
constexpr float kLearningRate = 1e-3F;

TableSpec bench_spec(std::uint64_t rows, std::uint32_t dim) {
  TableSpec spec;
  spec.name = "bench";
  spec.rows = rows;
  spec.dim = dim;
  return spec;
}

std::vector<ShardId> all_shards() {
  std::vector<ShardId> shards;
  for (std::uint32_t s = 0; s < kShards; ++s) shards.emplace_back(s);
  return shards;
}

// Inverse of the continuous Zipf distribution over ranks 1 … rows, scattered over 0 … rows-1.
RowId zipf_id(std::uint64_t rows, std::uint64_t random) {
  constexpr double kOneMinusExponent = 1.0 - 1.05;
  const double top = std::pow(static_cast<double>(rows), kOneMinusExponent);
  const double x = std::pow(1.0 + uniform_double(random) * (top - 1.0), 1.0 / kOneMinusExponent);
  return mix64(static_cast<std::uint64_t>(x)) % rows;
}

std::vector<RowId> draw_ids(std::uint64_t rows, std::uint32_t count, SplitMix64& random, IdMap& seen) {
  std::vector<RowId> ids;
  seen.clear();
  while (ids.size() < count) {
    const RowId id = zipf_id(rows, random());
    if (seen.insert(id) == ids.size()) ids.push_back(id);
  }
  // First-seen order puts the hot rows first; a server sees them in no particular order.
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random() % i]);
  return ids;
}

template <int Write>
inline void prefetch_row(const float* row, std::size_t bytes) {
  const auto* p = reinterpret_cast<const char*>(row);
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, Write, 3);
}

// Dim = 0: any. Fixed dims let the compiler unroll, as in the table.
template <std::uint32_t Dim>
void bare_gather(const float* rows, std::uint32_t dim, const RowId* ids, std::size_t n, std::size_t distance,
                 float* out) {
  const std::size_t d = Dim != 0 ? Dim : dim;
  for (std::size_t i = 0; i < n; ++i) {
    if (i + distance < n) prefetch_row<0>(rows + ids[i + distance] * d, d * sizeof(float));
    std::memcpy(out + i * d, rows + ids[i] * d, d * sizeof(float));
  }
}

template <std::uint32_t Dim>
void bare_apply(float* __restrict rows, std::uint32_t dim, const RowId* ids, std::size_t n,
                std::size_t distance, const float* __restrict grads) {
  const std::size_t d = Dim != 0 ? Dim : dim;
  for (std::size_t i = 0; i < n; ++i) {
    if (i + distance < n) prefetch_row<1>(rows + ids[i + distance] * d, d * sizeof(float));
    float* __restrict w = rows + ids[i] * d;
    const float* __restrict g = grads + i * d;
    for (std::size_t j = 0; j < d; ++j) w[j] -= kLearningRate * g[j];
  }
}

// Processor time of this thread: other programs on the machine then disturb a run less.
double now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 != 0 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

}  // namespace

GatherApplyWorkload::GatherApplyWorkload(std::uint64_t rows, std::uint32_t dim, std::uint32_t ids_per_call,
                                         std::uint32_t calls)
    : rows_(rows),
      dim_(dim),
      ids_per_call_(ids_per_call),
      grads_(std::size_t{ids_per_call} * dim),
      out_(std::size_t{ids_per_call} * dim),
      flat_(rows * dim * sizeof(float)),
      table_(bench_spec(rows, dim), kShards, all_shards()) {
  HF_CHECK(calls >= 1 && ids_per_call >= 1 && ids_per_call <= rows / 2, "1 ≤ ids per call ≤ rows / 2");
  SplitMix64 random(7);
  IdMap seen;
  for (std::uint32_t c = 0; c < calls; ++c) ids_.push_back(draw_ids(rows, ids_per_call, random, seen));
  for (float& g : grads_) g = uniform_float(random()) - 0.5F;
  for (const ShardId s : table_.shards())
    table_.for_each_row(s, [&](RowId id, std::span<const float> record) {
      std::copy_n(record.data(), dim_, flat_.floats() + id * dim_);
    });
  tune();
}

void GatherApplyWorkload::tune() {
  // An even number of runs with opposite gradients would not restore the weights exactly, so the tuned side
  // works on gradients of zero.
  std::vector<float> kept(grads_.size(), 0.0F);
  kept.swap(grads_);
  double best = std::numeric_limits<double>::infinity();
  std::size_t best_distance = distance_;
  for (const std::size_t distance : {4, 8, 12, 16, 24, 32, 48}) {
    distance_ = distance;
    std::vector<double> times;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const double start = now_ns();
      for (std::size_t c = 0; c < calls(); ++c) run_bare(c);
      times.push_back(now_ns() - start);
    }
    if (const double t = median(times); t < best) {
      best = t;
      best_distance = distance;
    }
  }
  distance_ = best_distance;
  grads_.swap(kept);
}

void GatherApplyWorkload::run_bare(std::size_t call) {
  const std::vector<RowId>& ids = ids_[call];
  const auto run = [&]<std::uint32_t Dim>() {
    bare_gather<Dim>(flat_.floats(), dim_, ids.data(), ids.size(), distance_, out_.data());
    bare_apply<Dim>(flat_.floats(), dim_, ids.data(), ids.size(), distance_, grads_.data());
  };
  switch (dim_) {
    case 16:
      return run.operator()<16>();
    case 32:
      return run.operator()<32>();
    case 64:
      return run.operator()<64>();
    default:
      return run.operator()<0>();
  }
}

void GatherApplyWorkload::run_table(std::size_t call) {
  table_.gather(ids_[call], out_.data(), true);
  table_.apply(ids_[call], grads_.data(), ApplyArgs{.learning_rate = kLearningRate});
}

bool GatherApplyWorkload::sides_equal() const {
  bool equal = true;
  for (const ShardId s : table_.shards())
    table_.for_each_row(s, [&](RowId id, std::span<const float> record) {
      equal = equal && std::equal(record.begin(), record.begin() + dim_, flat_.floats() + id * dim_);
    });
  return equal;
}

GatherApplyResult bench_gather_apply(std::uint64_t rows, std::uint32_t dim, std::uint32_t ids_per_call,
                                     int repeats) {
  HF_CHECK(repeats >= 1, "at least one repeat");
  constexpr std::uint32_t kCalls = 8;
  GatherApplyWorkload work(rows, dim, ids_per_call, kCalls);
  const auto time_calls = [&](auto run) {
    const double start = now_ns();
    for (std::size_t c = 0; c < work.calls(); ++c) run(c);
    return (now_ns() - start) / (static_cast<double>(work.calls()) * ids_per_call);
  };
  std::vector<double> bare, table, ratio;
  for (int repeat = -1; repeat < repeats; ++repeat) {  // the first pair only warms up
    const double a = time_calls([&](std::size_t c) { work.run_bare(c); });
    const double b = time_calls([&](std::size_t c) { work.run_table(c); });
    if (repeat < 0) continue;
    bare.push_back(a);
    table.push_back(b);
    ratio.push_back(b / a);
  }
  HF_CHECK(work.sides_equal(), "table and bare loop end with the same weights");
  return {median(bare), median(table), median(ratio)};
}

}  // namespace hf
