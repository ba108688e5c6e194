// The staleness gate and the synchronous update, seen from the workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cluster.hpp"

namespace hf {
namespace {

using test::Launch;
using test::run_cluster;
using test::SharedCounters;
using test::table_spec;
using test::WorkerSide;

class Staleness : public testing::TestWithParam<Transport> {
 protected:
  std::vector<std::string> role_maps() {
    int size = 0;
    HF_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    std::vector<std::string> maps;
    for (const std::string& letters : test::role_maps_of(size))
      if (test::role_map(letters).worker_ranks.size() > 1) maps.push_back(letters);
    return maps;
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Staleness, testing::Values(Transport::shm, Transport::mpi),
                         [](const auto& i) { return i.param == Transport::shm ? "shm" : "mpi"; });

std::vector<RowId> first_ids(std::uint64_t n) {
  std::vector<RowId> ids(n);
  for (std::uint64_t i = 0; i < n; ++i) ids[i] = i;
  return ids;
}

constexpr std::uint64_t kSteps = 30;

/// Worker 0 is slow. At the moment a pull of step t is answered, no other worker may have completed less than
/// t - bound steps; completed steps are counted apart from the servers, before the servers hear of them.
void check_gate(const Launch& launch) {
  SharedCounters completed;
  const std::uint64_t bound = launch.staleness_bound;
  const auto report = run_cluster(launch, [&](WorkerSide& w) {
    const TableId table = w.client.create_table(table_spec("t", TableKind::static_rows, 400, 8));
    const auto ids = first_ids(400);
    std::vector<float> rows(400 * 8), grads(400 * 8, 0.5F);
    if (w.id.value == 0) {
      // Until the others have gone as far ahead as they may: bound + 1 steps, or all of them.
      for (std::uint32_t o = 1; o < w.num_workers; ++o)
        completed.wait_for(o, bound == kStalenessInfinite ? kSteps : bound + 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (std::uint64_t t = 0; t < kSteps; ++t) {
      if (w.id.value == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      w.client.complete_pull(w.client.initiate_pull(table, ids, rows.data(), t, kPullAdmit));
      if (bound != kStalenessInfinite)
        for (std::uint32_t o = 0; o < w.num_workers; ++o) {
          if (o != w.id.value) {
            ASSERT_LE(t, completed[o].load() + bound)
                << "worker " << w.id.value << " reads at step " << t << ", worker " << o;
          }
        }
      w.client.push(table, ids, grads.data(), {.step = t, .weight = 1, .learning_rate = 0.01F});
      completed[w.id.value].store(t + 1);
      w.client.clock(t + 1, 1);
    }
  });
  if (!report) return;
  if (bound == kStalenessInfinite) {
    EXPECT_EQ(report->deferred_pulls, 0U);
    EXPECT_EQ(report->max_observed_lag, kSteps - 1);  // the others had finished before worker 0 began
  } else {
    EXPECT_EQ(report->max_observed_lag, bound);  // never more, and the others did get so far
  }
}

TEST_P(Staleness, TheLagNeverPassesTheBound) {
  const auto maps = role_maps();
  if (maps.empty()) GTEST_SKIP() << "needs two workers";
  for (const std::string& letters : maps)
    for (const std::uint64_t bound :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4}, kStalenessInfinite}) {
      SCOPED_TRACE(letters + ", bound " + std::to_string(bound));
      check_gate({.letters = letters, .transport = GetParam(), .staleness_bound = bound});
    }
}

TEST_P(Staleness, AnUngatedPullIsNotHeldBack) {
  const auto maps = role_maps();
  if (maps.empty()) GTEST_SKIP() << "needs two workers";
  const auto report =
      run_cluster({.letters = maps[0], .transport = GetParam(), .staleness_bound = 0}, [](WorkerSide& w) {
        const TableId table = w.client.create_table(table_spec("t", TableKind::static_rows, 50, 8));
        std::vector<float> rows(50 * 8);
        w.client.complete_pull(w.client.initiate_pull(table, first_ids(50), rows.data(), 1000, kPullUngated));
      });
  if (report) {
    EXPECT_EQ(report->deferred_pulls, 0U);
    EXPECT_EQ(report->max_observed_lag, 0U);
  }
}

TEST_P(Staleness, WhoHasNoMoreDataHoldsNobodyBack) {
  const auto maps = role_maps();
  if (maps.empty()) GTEST_SKIP() << "needs two workers";
  for (const std::string& letters : maps)
    for (const bool says_so : {true, false}) {
      SCOPED_TRACE(letters + (says_so ? ", clock at infinity" : ", goodbye"));
      SharedCounters done;
      run_cluster({.letters = letters, .transport = GetParam(), .staleness_bound = 0}, [&](WorkerSide& w) {
        const TableId table = w.client.create_table(table_spec("t", TableKind::static_rows, 64, 4));
        const auto ids = first_ids(64);
        std::vector<float> rows(64 * 4), grads(64 * 4, 1.0F);
        if (w.id.value == 0) {
          if (!says_so) return;  // run_cluster says goodbye
          w.client.clock(kClockInfinite, 0);
          for (std::uint32_t o = 1; o < w.num_workers; ++o) done.wait_for(o, 1);
          return;
        }
        for (std::uint64_t t = 0; t < 10; ++t) {
          w.client.complete_pull(w.client.initiate_pull(table, ids, rows.data(), t, kPullAdmit));
          w.client.push(table, ids, grads.data(), {.step = t, .weight = 2, .learning_rate = 1});
          w.client.clock(t + 1, 2);
        }
        w.client.complete_pull(w.client.initiate_pull(table, ids, rows.data(), 10, kPullAdmit));
        // Ten steps of -(n · 1) / (n · 2), the worker without data counting nothing.
        std::vector<float> start(4);
        initial_row(w.client.table(table), 0, start.data());
        EXPECT_NEAR(rows[0], start[0] - 5.0F, 1e-4);
        done[w.id.value].store(1);
      });
    }
}

// ------------------------------------------------------------------------------------- synchronous update

constexpr std::uint64_t kSyncRows = 300;
constexpr std::uint32_t kSyncDim = 6;
constexpr Step kSyncSteps = 8;

/// The rows that a worker has gradients for in a step; worker 1 has none in odd steps.
std::vector<RowId> sync_ids(std::uint32_t worker, Step step) {
  std::vector<RowId> ids;
  if (worker == 1 && step % 2 == 1) return ids;
  for (RowId id = 0; id < kSyncRows; ++id)
    if (mix64(mix64(id, step), worker) % 3 != 0) ids.push_back(id);
  return ids;
}
float sync_gradient(std::uint32_t worker, Step step, RowId id, std::uint32_t column) {
  return test::random_float(worker * 1000 + step, id, column);
}
/// Samples of a batch: unequal, and 0 where the batch was rejected.
float sync_weight(std::uint32_t worker, Step step) {
  return worker == 2 && step == 3 ? 0.0F : 3.0F + static_cast<float>(worker);
}
constexpr float kSyncRate = 0.1F;

TableSpec sync_spec() {
  TableSpec spec = table_spec("t", TableKind::static_rows, kSyncRows, kSyncDim);
  spec.optimizer.kind = OptimizerKind::adagrad;  // one update of a sum is not several updates
  spec.optimizer.initial_accumulator = 0.1F;
  return spec;
}

std::vector<double> sync_reference(std::uint32_t workers) {
  const TableSpec spec = sync_spec();
  std::vector<double> w(kSyncRows * kSyncDim), squares(w.size(), spec.optimizer.initial_accumulator);
  for (RowId id = 0; id < kSyncRows; ++id) {
    std::vector<float> row(kSyncDim);
    initial_row(spec, id, row.data());
    std::copy(row.begin(), row.end(), w.begin() + static_cast<std::ptrdiff_t>(id * kSyncDim));
  }
  for (Step t = 0; t < kSyncSteps; ++t) {
    std::vector<double> sum(w.size(), 0);
    std::vector<bool> touched(kSyncRows, false);
    double weight = 0;
    for (std::uint32_t k = 0; k < workers; ++k) {
      weight += sync_weight(k, t);
      if (sync_weight(k, t) == 0.0F) continue;
      for (const RowId id : sync_ids(k, t)) {
        touched[id] = true;
        for (std::uint32_t j = 0; j < kSyncDim; ++j) sum[id * kSyncDim + j] += sync_gradient(k, t, id, j);
      }
    }
    for (RowId id = 0; id < kSyncRows; ++id)
      for (std::uint32_t j = 0; touched[id] && j < kSyncDim; ++j) {
        const std::size_t i = id * kSyncDim + j;
        const double g = sum[i] / weight;
        squares[i] += g * g;
        w[i] -= kSyncRate * g / (std::sqrt(squares[i]) + spec.optimizer.epsilon);
      }
  }
  return w;
}

/// One training; `seed` makes the delays. The rows at the end, on worker 0.
std::vector<float> train_synchronously(const Launch& launch, std::uint64_t seed) {
  std::vector<float> result;
  run_cluster(launch, [&](WorkerSide& w) {
    const std::uint32_t me = w.id.value;
    const TableId table = w.client.create_table(sync_spec());
    const auto pause = [&](std::uint64_t a, std::uint64_t b) {
      const std::uint64_t x = mix64(mix64(seed, me), a * 10 + b);
      if (x % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(x % 3000));
    };
    const auto all = first_ids(kSyncRows);
    std::vector<float> rows(kSyncRows * kSyncDim);
    for (Step t = 0; t < kSyncSteps; ++t) {
      const auto ids = sync_ids(me, t);
      w.client.complete_pull(w.client.initiate_pull(table, ids, rows.data(), t, kPullAdmit));
      pause(t, 0);
      if (sync_weight(me, t) > 0) {
        std::vector<float> grads;
        for (const RowId id : ids)
          for (std::uint32_t j = 0; j < kSyncDim; ++j) grads.push_back(sync_gradient(me, t, id, j));
        w.client.push(table, ids, grads.data(),
                      {.step = t, .weight = sync_weight(me, t), .learning_rate = kSyncRate});
      }
      pause(t, 1);
      w.client.clock(t + 1, sync_weight(me, t));
    }
    w.client.complete_pull(w.client.initiate_pull(table, all, rows.data(), kSyncSteps, kPullAdmit));
    if (me == 0) result = rows;
    w.workers.barrier("the last pull");
  });
  return result;
}

TEST_P(Staleness, SynchronousUpdateIsOneStepOfTheSumWhateverArrivesFirst) {
  const auto maps = role_maps();
  if (maps.empty()) GTEST_SKIP() << "needs two workers";
  for (const std::string& letters : maps) {
    SCOPED_TRACE(letters);
    const Launch launch{.letters = letters, .transport = GetParam(), .staleness_bound = 0};
    const std::vector<float> first = train_synchronously(launch, 0);
    const auto reference =
        sync_reference(static_cast<std::uint32_t>(test::role_map(letters).worker_ranks.size()));
    for (std::size_t i = 0; i < first.size(); ++i)
      ASSERT_NEAR(first[i], reference[i], 2e-5) << "row " << i / kSyncDim;
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
      const std::vector<float> again = train_synchronously(launch, seed);
      ASSERT_EQ(again.size(), first.size());
      ASSERT_TRUE(first.empty() || std::memcmp(again.data(), first.data(), first.size() * sizeof(float)) == 0)
          << "run " << seed;
    }
  }
}

}  // namespace
}  // namespace hf
