// DistributedEmbedding as a replacement of torch::nn::Embedding.
#include <gtest/gtest.h>

#include "comm/mpi.hpp"
#include "core/error.hpp"
#include "hyperframes/hyperframes.hpp"
#include "ranks/api/context.hpp"
#include "table/table.hpp"

namespace hf {
namespace {

/// Runs `work` on every worker of a fresh process group.
template <class Work>
void on_workers(ProcessGroupOptions options, Work&& work) {
  options.buffer_pool_size = 1 << 20;
  options.compute_threads = 1;
  const auto group = init_process_group(options);
  if (group->is_worker()) {
    work(*group);
    group->barrier("all workers to end the test");
  } else {
    group->serve();
  }
  destroy_process_group();
}

/// The table's starting weights as a tensor.
torch::Tensor initial_weights(const std::string& name, std::int64_t rows, std::int64_t dim,
                              const InitSpec& init) {
  TableSpec spec;
  spec.name = name;
  spec.rows = static_cast<std::uint64_t>(rows);
  spec.dim = static_cast<std::uint32_t>(dim);
  spec.init = init;
  torch::Tensor w = torch::empty({rows, dim});
  for (std::int64_t r = 0; r < rows; ++r)
    initial_row(spec, static_cast<RowId>(r), w.data_ptr<float>() + r * dim);
  return w;
}

TEST(DistributedEmbedding, ForwardIsALookupOfAnyShape) {
  on_workers({}, [](ProcessGroup&) {
    DistributedEmbedding e(50, 4, DistributedEmbeddingOptions{.name = "t"});
    const torch::Tensor w = initial_weights("t", 50, 4, InitSpec{.kind = InitKind::normal, .scale = 1.0F});
    const torch::Tensor ids = torch::tensor({3, 3, 49, 0, 7, 3}, torch::kInt64).view({2, 3});
    const torch::Tensor out = e->forward(ids);
    EXPECT_EQ(out.sizes(), (std::vector<std::int64_t>{2, 3, 4}));
    EXPECT_TRUE(torch::equal(out.detach(), torch::embedding(w, ids)));
    EXPECT_EQ(e->forward(torch::empty({0, 2}, torch::kInt64)).sizes(), (std::vector<std::int64_t>{0, 2, 4}));
    Context::current().pending.clear();
  });
}

TEST(DistributedEmbedding, SynchronousStepsEqualTorchSgd) {
  on_workers({.staleness_bound = 0}, [](ProcessGroup& group) {
    DistributedEmbedding e(40, 3, DistributedEmbeddingOptions{.name = "t"});
    AsyncSGD optimizer({}, 0.5);
    torch::Tensor w =
        initial_weights("t", 40, 3, InitSpec{.kind = InitKind::normal, .scale = 1.0F}).requires_grad_(true);
    const auto ids_of = [](int step, int worker) {
      return (torch::arange(10, torch::kInt64) * (worker + 3) + step * 7).remainder(40);
    };
    for (int step = 0; step < 20; ++step) {
      optimizer.zero_grad();
      // Used twice in one step: one update from the sum.
      const torch::Tensor ids = ids_of(step, group.worker_id());
      (e->forward(ids).pow(2).sum() + e->forward(ids.slice(0, 0, 4)).sum()).backward();
      optimizer.step();
      torch::Tensor loss = torch::zeros({});
      for (int worker = 0; worker < group.num_workers(); ++worker) {
        const torch::Tensor other = ids_of(step, worker);
        loss =
            loss + torch::embedding(w, other).pow(2).sum() + torch::embedding(w, other.slice(0, 0, 4)).sum();
      }
      (loss / group.num_workers()).backward();
      torch::NoGradGuard no_grad;
      w.sub_(0.5 * w.grad());
      w.mutable_grad() = torch::Tensor();
    }
    group.synchronize();
    const InferenceGuard inference;
    const torch::Tensor got = e->forward(torch::arange(40, torch::kInt64));
    EXPECT_LE((got - w).norm().item<double>() / w.norm().item<double>(), 1e-5);
  });
}

// The next batch is asked for before the current one is computed, at bound 0, where its rows wait for this very step.
TEST(DistributedEmbedding, PrefetchOfTheNextStepNeverWaitsForItself) {
  on_workers({.staleness_bound = 0, .wait_timeout_seconds = 20}, [](ProcessGroup& group) {
    DistributedEmbedding e(40, 2, DistributedEmbeddingOptions{.name = "t"});
    AsyncSGD optimizer({}, 0.1);
    const auto batch = [](int step) { return torch::arange(8, torch::kInt64) + step; };
    for (int step = 0; step < 6; ++step) {
      optimizer.zero_grad();
      e->prefetch(batch(step + 1));
      if (step == 3) e->prefetch(batch(30));  // a guess that nobody asks for
      e->forward(batch(step)).sum().backward();
      optimizer.step();
    }
    group.synchronize();
    const InferenceGuard inference;
    const torch::Tensor w = initial_weights("t", 40, 2, InitSpec{.kind = InitKind::normal, .scale = 1.0F});
    // Row 5 was in all of the six batches.
    EXPECT_TRUE(
        torch::allclose(e->forward(torch::tensor({5}, torch::kInt64)), w.slice(0, 5, 6) - 0.6, 1e-5, 1e-5));
  });
}

TEST(DistributedEmbedding, PrefetchGivesTheSameRowsAndWrongGuessesDoNoHarm) {
  on_workers({}, [](ProcessGroup&) {
    DistributedEmbedding e(100, 8);
    const torch::Tensor a = torch::arange(30, torch::kInt64), b = torch::arange(30, 60, torch::kInt64);
    const InferenceGuard inference;
    const torch::Tensor plain = e->forward(a);
    e->prefetch(a);
    EXPECT_TRUE(torch::equal(e->forward(a), plain));
    e->prefetch(b);
    EXPECT_TRUE(torch::equal(e->forward(a), plain));
    e->prefetch(b);
    e->prefetch(a);
    EXPECT_TRUE(torch::equal(e->forward(a), plain));
  });
}

TEST(DistributedEmbedding, DynamicTableTakesAnyIdAndCreatesRowsOnlyInTraining) {
  on_workers({.staleness_bound = 0}, [](ProcessGroup& group) {
    DistributedEmbedding e(0, 2, DistributedEmbeddingOptions{.name = "d", .kind = TableKind::dynamic});
    AsyncSGD optimizer({}, 1.0);
    const torch::Tensor ids =
        torch::tensor({std::int64_t{-1}, std::int64_t{1} << 62, std::int64_t{5}}, torch::kInt64);
    const auto rows = [&] {
      std::uint64_t sum = 0;
      for (const std::string& answer : group.context()->client().command(R"({"op": "statistics"})"))
        sum += std::stoull(answer.substr(answer.find("\"rows\":") + 7));
      return sum;
    };
    torch::Tensor before;
    {
      const InferenceGuard inference;
      before = e->forward(ids).clone();
      EXPECT_EQ(rows(), 0u);
    }
    group.barrier("all workers to look at the untouched table");
    e->forward(ids).sum().backward();
    optimizer.step();
    group.synchronize();
    EXPECT_EQ(rows(), 3u);
    const InferenceGuard inference;
    EXPECT_TRUE(torch::allclose(e->forward(ids), before - 1.0));
  });
}

TEST(DistributedEmbedding, WrongUseIsNamed) {
  on_workers({}, [](ProcessGroup&) {
    DistributedEmbedding e(10, 4, DistributedEmbeddingOptions{.name = "movies"});
    const auto message = [&](const torch::Tensor& ids) {
      try {
        e->forward(ids);
      } catch (const DataError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    EXPECT_NE(message(torch::tensor({3, 10}, torch::kInt64)).find("table \"movies\": id 10 is out of range"),
              std::string::npos);
    EXPECT_NE(message(torch::tensor({-1}, torch::kInt64)).find("id -1"), std::string::npos);
    EXPECT_NE(message(torch::tensor({1.5F})).find("expected int64"), std::string::npos);
    EXPECT_THROW(DistributedEmbedding(10, 0), ConfigError);
    EXPECT_THROW(DistributedEmbedding(0, 4), ConfigError);
    EXPECT_THROW(DistributedEmbedding(10, 4, DistributedEmbeddingOptions{.name = "movies"}), ConfigError);
    EXPECT_THROW(AsyncSGD({torch::zeros({2}, torch::kFloat64)}, 0.1), ConfigError);
  });
}

TEST(AsyncOptimizer, ClipsTheGlobalNormAndFollowsTheSchedule) {
  on_workers({.staleness_bound = 0}, [](ProcessGroup& group) {
    torch::Tensor p = torch::zeros({4}).requires_grad_(true);
    AsyncSGD optimizer({p}, 1.0);
    optimizer.set_clip_norm(1.0);
    optimizer.set_schedule([](std::uint64_t step) { return step == 0 ? 1.0 : 0.25; });
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      (p * 10).sum().backward();  // gradient 10 in each of 4: norm 20, clipped to 1
      optimizer.step();
    }
    group.synchronize();
    optimizer.pull_parameters();
    EXPECT_TRUE(torch::allclose(p.detach(), torch::full({4}, -0.5F * 1.25F), 1e-6, 1e-6)) << p;
  });
}

TEST(ProcessGroup, TrainingBeforeInitIsNamed) {
  EXPECT_THROW(DistributedEmbedding(10, 4), ConfigError);
  EXPECT_THROW(init_process_group({.role = "boss"}), ConfigError);
  EXPECT_THROW(init_process_group({.transport = "pigeon"}), ConfigError);
}

}  // namespace
}  // namespace hf
