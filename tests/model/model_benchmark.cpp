// Speed of what a worker computes, one thread: the MLP against torch::nn::Sequential, embedding rows, finite
// check. Medians of interleaved repetitions:
//   build/release/bin/model_benchmark --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true
//     --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <numeric>

#include "core/random.hpp"
#include "model/blas.hpp"
#include "model/embedding_gather.hpp"
#include "model/finite.hpp"
#include "model/interactions.hpp"
#include "model/mlp.hpp"
#include "model/runtime.hpp"

namespace {

constexpr std::int64_t kBatch = 2048;
constexpr std::int64_t kFields = 26;
constexpr std::int64_t kDim = 16;
constexpr std::int64_t kUniqueRows = 20000;

void per_sample(benchmark::State& state) {
  state.counters["us_per_sample"] =
      benchmark::Counter(static_cast<double>(kBatch) * 1e-6,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class Module>
void train_step(benchmark::State& state, Module& net) {
  const auto x = torch::randn({kBatch, 429}, torch::requires_grad());
  for (auto _ : state) {
    net->zero_grad();
    x.mutable_grad() = torch::Tensor();
    net->forward(x).sum().backward();
  }
  per_sample(state);
}

void bm_mlp(benchmark::State& state) {
  hf::Initializer init(1);
  auto net = std::make_shared<hf::Mlp>(hf::MlpOptions{{429, 400, 400, 400, 1}, false, 0.0, 0}, init);
  train_step(state, net);
}
BENCHMARK(bm_mlp)->Unit(benchmark::kMillisecond)->MinTime(0.5);

void bm_mlp_dropout(benchmark::State& state) {
  hf::Initializer init(1);
  auto net = std::make_shared<hf::Mlp>(hf::MlpOptions{{429, 400, 400, 400, 1}, false, 0.5, 0}, init);
  train_step(state, net);
}
BENCHMARK(bm_mlp_dropout)->Unit(benchmark::kMillisecond)->MinTime(0.5);

void bm_sequential(benchmark::State& state) {
  using namespace torch::nn;
  Sequential net(Linear(429, 400), ReLU(), Linear(400, 400), ReLU(), Linear(400, 400), ReLU(),
                 Linear(400, 1));
  train_step(state, net);
}
BENCHMARK(bm_sequential)->Unit(benchmark::kMillisecond)->MinTime(0.5);

// The matrix products of one step alone, into tensors that stay.
void bm_gemm_only(benchmark::State& state) {
  const std::int64_t widths[] = {429, 400, 400, 400};
  struct Layer {
    torch::Tensor x, w, y, dx, dw;
  };
  std::vector<Layer> layers;
  for (int l = 0; l < 3; ++l)
    layers.push_back({torch::randn({kBatch, widths[l]}), torch::randn({400, widths[l]}),
                      torch::randn({kBatch, 400}), torch::randn({kBatch, widths[l]}),
                      torch::randn({400, widths[l]})});
  for (auto _ : state) {
    for (auto& l : layers) at::mm_out(l.y, l.x, l.w.t());
    for (auto& l : layers) {
      at::mm_out(l.dw, l.y.t(), l.x);
      at::mm_out(l.dx, l.y, l.w);
    }
  }
  per_sample(state);
}
BENCHMARK(bm_gemm_only)->Unit(benchmark::kMillisecond)->MinTime(0.5);

std::vector<std::uint32_t> random_index() {
  std::vector<std::uint32_t> index(kBatch * kFields);
  for (std::size_t i = 0; i < index.size(); ++i)
    index[i] = static_cast<std::uint32_t>(hf::mix64(i) % kUniqueRows);
  return index;
}

void bm_gather(benchmark::State& state) {
  const auto index = random_index();
  std::vector<hf::GatherColumn> columns(kFields);
  for (std::size_t c = 0; c < columns.size(); ++c) columns[c].index = index.data() + c * kBatch;
  const auto rows = torch::randn({kUniqueRows, kDim});
  torch::NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(hf::embedding_gather(rows, columns, kBatch));
}
BENCHMARK(bm_gather)->Unit(benchmark::kMillisecond);

void bm_gather_with_backward(benchmark::State& state) {
  const auto index = random_index();
  std::vector<hf::GatherColumn> columns(kFields);
  for (std::size_t c = 0; c < columns.size(); ++c) columns[c].index = index.data() + c * kBatch;
  const auto rows = torch::randn({kUniqueRows, kDim}, torch::requires_grad());
  const auto grad = torch::randn({kBatch, kFields, kDim});
  for (auto _ : state) {
    rows.mutable_grad() = torch::Tensor();
    hf::embedding_gather(rows, columns, kBatch).backward(grad);
  }
}
BENCHMARK(bm_gather_with_backward)->Unit(benchmark::kMillisecond);

void bm_factorization_with_backward(benchmark::State& state) {
  const auto group = torch::randn({kBatch, kFields, kDim + 1}, torch::requires_grad());
  const auto dense = torch::randn({kBatch, 13});
  const auto grad = torch::randn({kBatch, kFields * kDim + 13});
  const auto logit_grad = torch::randn({kBatch});
  for (auto _ : state) {
    group.mutable_grad() = torch::Tensor();
    auto terms = hf::factorization_terms(group, dense, true);
    torch::autograd::backward({terms.logit, terms.features}, {logit_grad, grad});
  }
}
BENCHMARK(bm_factorization_with_backward)->Unit(benchmark::kMillisecond);

void bm_pairwise_dot_with_backward(benchmark::State& state) {
  const auto vectors = torch::randn({kBatch, kFields + 1, kDim}, torch::requires_grad());
  const auto grad = torch::randn({kBatch, (kFields + 1) * kFields / 2});
  for (auto _ : state) {
    vectors.mutable_grad() = torch::Tensor();
    hf::pairwise_dot(vectors).backward(grad);
  }
}
BENCHMARK(bm_pairwise_dot_with_backward)->Unit(benchmark::kMillisecond);

void bm_all_finite(benchmark::State& state) {
  const auto x = torch::randn({kBatch, 429});
  for (auto _ : state) benchmark::DoNotOptimize(hf::all_finite(x));
  state.SetBytesProcessed(state.iterations() * kBatch * 429 * 4);
}
BENCHMARK(bm_all_finite)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  hf::tune_allocator();
  hf::set_compute_threads(1);
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("blas", hf::blas_info().name);
  benchmark::RunSpecifiedBenchmarks();
}
