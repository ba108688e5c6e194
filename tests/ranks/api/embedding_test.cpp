// DistributedEmbedding as a replacement of torch::nn::Embedding.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

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
    EXPECT_TRUE(Context::current().pending.lookups().empty()) << "a forward alone leaves nothing for step()";
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
    for (const char* name : {"MOVIES", "dense", "Dense", "a/b", "..", " a"})
      EXPECT_THROW(DistributedEmbedding(10, 4, DistributedEmbeddingOptions{.name = name}), ConfigError)
          << name;
    EXPECT_THROW(AsyncSGD({torch::zeros({2}, torch::kFloat64)}, 0.1), ConfigError);
  });
}

/// The calls of a training program, to be run with torch::nn::Embedding and with hf::DistributedEmbedding.
struct Program {
  std::function<torch::Tensor(const torch::Tensor& ids)> forward;  // of one embedding of 12 rows
  torch::Tensor dense;                                             // one more parameter, [3]
  std::function<void()> zero_grad, step;
  torch::Tensor loss(std::vector<std::int64_t> ids, double factor = 1) const {
    return (forward(torch::tensor(ids, torch::kInt64)) * dense).pow(2).sum() * factor;
  }
};

/// Runs `calls` with both; the rows and the dense parameter must be the same afterwards.
template <class Calls>
void same_as_torch(const Calls& calls, double clip_norm = 0) {
  on_workers({.staleness_bound = 0}, [&](ProcessGroup& group) {
    const torch::Tensor start = torch::tensor({0.5F, -1.0F, 2.0F});
    const torch::Tensor w = initial_weights("t", 12, 3, InitSpec{.kind = InitKind::normal, .scale = 1.0F});

    torch::Tensor weight = w.clone().requires_grad_(true);
    torch::Tensor reference = start.clone().requires_grad_(true);
    torch::optim::SGD sgd({weight, reference}, 0.1);
    Program torch_program{[&](const torch::Tensor& ids) { return torch::embedding(weight, ids); }, reference,
                          [&] { sgd.zero_grad(); },
                          [&] {
                            if (clip_norm > 0)
                              torch::nn::utils::clip_grad_norm_({weight, reference}, clip_norm);
                            sgd.step();
                          }};
    calls(torch_program);

    DistributedEmbedding e(12, 3, DistributedEmbeddingOptions{.name = "t"});
    torch::Tensor p = start.clone().requires_grad_(true);
    AsyncSGD optimizer({p}, 0.1);
    if (clip_norm > 0) optimizer.set_clip_norm(clip_norm);
    calls(Program{[&](const torch::Tensor& ids) { return e->forward(ids); }, p,
                  [&] { optimizer.zero_grad(); }, [&] { optimizer.step(); }});
    group.synchronize();
    optimizer.pull_parameters();
    const InferenceGuard inference;
    const torch::Tensor rows = e->forward(torch::arange(12, torch::kInt64));
    EXPECT_FALSE(torch::equal(weight.detach(), w)) << "the program learns nothing";
    EXPECT_TRUE(torch::allclose(rows, weight.detach(), 1e-5, 1e-6)) << rows << '\n' << weight;
    EXPECT_TRUE(torch::allclose(p.detach(), reference.detach(), 1e-5, 1e-6)) << p << '\n' << reference;
  });
}

TEST(OrderOfCalls, ZeroGradBetweenForwardAndBackward) {
  same_as_torch([](const Program& p) {
    for (int i = 0; i < 3; ++i) {
      const torch::Tensor loss = p.loss({1, 4, 4, i});
      p.zero_grad();
      loss.backward();
      p.step();
    }
  });
}

TEST(OrderOfCalls, TwoForwardsOneStep) {
  same_as_torch([](const Program& p) {
    for (int i = 0; i < 3; ++i) {
      p.zero_grad();
      const torch::Tensor a = p.loss({1, 2, i}), b = p.loss({2, 3, 3}, 0.5);
      (a + b).backward();
      p.step();
    }
  });
}

TEST(OrderOfCalls, AForwardWithoutBackwardIsForgotten) {
  same_as_torch([](const Program& p) {
    for (int i = 0; i < 3; ++i) {
      p.loss({7, 8});
      p.zero_grad();
      const torch::Tensor used = p.loss({1, 2, i}), unused = p.loss({9, 1});
      used.backward();
      p.step();
    }
  });
}

TEST(OrderOfCalls, GradientsOfSeveralBackwardsAddUp) {
  same_as_torch([](const Program& p) {
    for (int i = 0; i < 2; ++i) {
      p.zero_grad();
      for (int part = 0; part < 4; ++part) p.loss({part, part + 1, 5, i}, 0.25).backward();
      p.step();
    }
  });
}

TEST(OrderOfCalls, ARetainedGraphIsGoneThroughTwice) {
  same_as_torch([](const Program& p) {
    p.zero_grad();
    const torch::Tensor loss = p.loss({1, 2, 2});
    loss.backward({}, true);
    loss.backward({}, true);
    p.zero_grad();
    loss.backward({}, true);
    loss.backward();
    p.step();
  });
}

TEST(OrderOfCalls, BackwardsOfOlderForwardsAcrossASkippedRound) {
  same_as_torch([](const Program& p) {
    const torch::Tensor first = p.loss({1, 2, 3});
    const torch::Tensor second = p.loss({3, 4});
    second.backward();
    p.zero_grad();  // thrown away
    first.backward();
    p.step();
    p.zero_grad();
  });
}

TEST(OrderOfCalls, NoGradLeavesNothingBehind) {
  same_as_torch([](const Program& p) {
    p.zero_grad();
    {
      torch::NoGradGuard no_grad;
      p.loss({1, 2, 3});
    }
    p.loss({2, 5}).backward();
    p.step();
  });
}

TEST(OrderOfCalls, AnExceptionBetweenForwardAndBackward) {
  same_as_torch([](const Program& p) {
    for (int i = 0; i < 3; ++i) {
      p.zero_grad();
      try {
        const torch::Tensor loss = p.loss({1, 2, i});
        if (i == 1) throw std::runtime_error("the program's own");
        loss.backward();
      } catch (const std::runtime_error&) {
        p.loss({6}).backward();
      }
      p.step();
    }
  });
}

TEST(OrderOfCalls, AnEmptyBatchBesideAFullOne) {
  same_as_torch([](const Program& p) {
    p.zero_grad();
    (p.loss({}) + p.loss({0, 11})).backward();
    p.step();
  });
}

TEST(OrderOfCalls, ClippingTakesTheNormOfTheSumOfATablesGradients) {
  same_as_torch(
      [](const Program& p) {
        for (int i = 0; i < 3; ++i) {
          p.zero_grad();
          (p.loss({1, 2, 2}) + p.loss({2, 3, i})).backward();
          p.loss({2, 9}).backward();
          p.step();
        }
      },
      0.05);
}

TEST(OrderOfCalls, GradientsThatAreNotAccumulatedAreNotPushed) {
  same_as_torch([](const Program& p) {
    p.zero_grad();
    const torch::Tensor loss = p.loss({1, 2});
    torch::autograd::grad({loss}, {p.dense});
    p.loss({3}).backward();
    p.step();
  });
}

TEST(OrderOfCalls, AStepWithoutZeroGradBeforeTheNextIsAnErrorNotSilence) {
  on_workers({}, [](ProcessGroup&) {
    DistributedEmbedding e(12, 3, DistributedEmbeddingOptions{.name = "t"});
    torch::Tensor p = torch::ones({3}).requires_grad_(true);
    AsyncSGD optimizer({p}, 0.1);
    const auto backward = [&] { (e->forward(torch::tensor({1, 2}, torch::kInt64)) * p).sum().backward(); };
    backward();
    optimizer.step();
    EXPECT_THROW(optimizer.step(), ConfigError);
    EXPECT_THROW(backward(), ConfigError);
    optimizer.zero_grad();
    backward();
    optimizer.step();
    optimizer.zero_grad();
    EXPECT_NO_THROW(optimizer.step());  // nothing to push
    EXPECT_EQ(optimizer.steps(), 3U);
  });
}

TEST(AsyncOptimizer, ASecondOneIsRefused) {
  on_workers({}, [](ProcessGroup&) {
    DistributedEmbedding e(12, 3, DistributedEmbeddingOptions{.name = "t"});
    const AsyncSGD optimizer({}, 0.1);
    EXPECT_THROW(AsyncSGD({}, 0.1), ConfigError);
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
