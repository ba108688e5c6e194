// The parameter client against the server loop: values, flow control, errors. The pool is the smallest there
// is, so that rings are short and every larger pull or push laps them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "cluster.hpp"

namespace hf {
namespace {

using test::Launch;
using test::run_cluster;
using test::table_spec;
using test::WorkerSide;
using testing::HasSubstr;

class ServerLoop : public testing::TestWithParam<Transport> {
 protected:
  void for_each_cluster(const std::function<void(const Launch&)>& use,
                        std::uint64_t bound = kStalenessInfinite) {
    int size = 0;
    HF_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (const std::string& letters : test::role_maps_of(size)) {
      SCOPED_TRACE(letters);
      use({.letters = letters, .transport = GetParam(), .staleness_bound = bound});
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, ServerLoop, testing::Values(Transport::shm, Transport::mpi),
                         [](const auto& i) { return i.param == Transport::shm ? "shm" : "mpi"; });

std::vector<float> pull(ParameterClient& client, TableId table, const std::vector<RowId>& ids, Step step = 0,
                        std::uint8_t flags = kPullAdmit) {
  std::vector<float> rows(ids.size() * client.table(table).dim, -77.0F);
  client.complete_pull(client.initiate_pull(table, ids, rows.data(), step, flags));
  return rows;
}

std::vector<RowId> range(RowId from, RowId to, RowId by = 1) {
  std::vector<RowId> ids;
  for (RowId id = from; id < to; id += by) ids.push_back(id);
  return ids;
}

/// The rows of one worker as they must be: plain arithmetic in a map.
class Reference {
 public:
  explicit Reference(TableSpec spec) : spec_(std::move(spec)) {}
  std::vector<float>& row(RowId id) {
    std::vector<float>& r = rows_[id];
    if (r.empty()) {
      r.resize(spec_.dim);
      initial_row(spec_, id, r.data());
    }
    return r;
  }
  void sgd(RowId id, const float* grad, float rate, float weight) {
    std::vector<float>& r = row(id);
    for (std::uint32_t j = 0; j < spec_.dim; ++j) r[j] -= rate * grad[j] / weight;
  }
  void expect_equal(const std::vector<RowId>& ids, const std::vector<float>& rows) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::uint32_t j = 0; j < spec_.dim; ++j)
        ASSERT_NEAR(rows[i * spec_.dim + j], row(ids[i])[j], 1e-5)
            << spec_.name << " row " << ids[i] << " column " << j;
  }
  std::size_t size() const { return rows_.size(); }

 private:
  TableSpec spec_;
  std::map<RowId, std::vector<float>> rows_;
};

/// Distinct ids that belong to one worker.
std::vector<RowId> own_ids(const WorkerSide& w, bool dynamic, std::uint64_t rows, std::size_t n,
                           std::uint64_t seed) {
  std::set<RowId> ids;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t k = mix64(seed, i) % (rows / w.num_workers) * w.num_workers + w.id.value;
    ids.insert(dynamic ? mix64(k) : k);
  }
  return {ids.begin(), ids.end()};
}

TEST_P(ServerLoop, RandomPullsAndPushesEqualAMap) {
  for_each_cluster([](const Launch& launch) {
    run_cluster(launch, [](WorkerSide& w) {
      constexpr std::uint64_t kRows = 2000;
      const TableSpec specs[] = {table_spec("fixed", TableKind::static_rows, kRows, 16),
                                 table_spec("growing", TableKind::dynamic, 0, 5),
                                 table_spec("wide", TableKind::static_rows, kRows, 300)};
      std::vector<Reference> references;
      for (const TableSpec& spec : specs) {
        EXPECT_EQ(w.client.create_table(spec).value, references.size());
        references.emplace_back(spec);
      }
      EXPECT_EQ(w.client.tables(), std::vector<TableSpec>(std::begin(specs), std::end(specs)));
      for (std::uint64_t step = 0; step < 25; ++step)
        for (std::uint32_t t = 0; t < 3; ++t) {
          const std::uint64_t seed = mix64(step * 3 + t, w.id.value);
          const auto ids =
              own_ids(w, specs[t].kind == TableKind::dynamic, kRows, seed % 4 == 0 ? 0 : seed % 500, seed);
          ASSERT_NO_FATAL_FAILURE(references[t].expect_equal(ids, pull(w.client, TableId{t}, ids, step)));
          std::vector<float> grads(ids.size() * specs[t].dim);
          for (std::size_t i = 0; i < grads.size(); ++i) grads[i] = test::random_float(seed, i, 1);
          const float rate = 0.25F, weight = 1.0F + static_cast<float>(seed % 3);
          w.client.push(TableId{t}, ids, grads.data(),
                        {.step = step, .weight = weight, .learning_rate = rate});
          for (std::size_t i = 0; i < ids.size(); ++i)
            references[t].sgd(ids[i], grads.data() + i * specs[t].dim, rate, weight);
        }
      w.client.flush();
      w.workers.barrier("all pushes");
      std::size_t grown = references[1].size();
      for (std::uint32_t t = 0; t < 3; ++t) {
        const auto ids = own_ids(w, specs[t].kind == TableKind::dynamic, kRows, 5000, 1);
        ASSERT_NO_FATAL_FAILURE(
            references[t].expect_equal(ids, pull(w.client, TableId{t}, ids, 0, kPullUngated)));
      }
      w.workers.barrier("all pulls");
      // The pulls without kPullAdmit gave initial values and stored nothing.
      std::uint64_t rows = 0;
      for (const std::string& answer : w.client.command(R"({"op": "statistics"})"))
        rows += nlohmann::json::parse(answer).at("rows").get<std::uint64_t>();
      auto all = static_cast<double>(grown);
      w.workers.all_reduce_sum(&all, 1, "rows");
      EXPECT_EQ(rows, 2 * kRows + static_cast<std::uint64_t>(all));
      EXPECT_GT(w.client.counters().rows_pushed, 0U);
      EXPECT_GT(w.client.counters().bytes_pushed, w.client.counters().rows_pushed * 8);
    });
  });
}

TEST_P(ServerLoop, PullsLargerThanTheRingsAndSeveralAtOnce) {
  for_each_cluster([](const Launch& launch) {
    run_cluster(launch, [](WorkerSide& w) {
      constexpr std::uint64_t kRows = 6000;
      const TableSpec spec = table_spec("t", TableKind::static_rows, kRows, 24);
      const TableId table = w.client.create_table(spec);
      Reference reference(spec);
      // 4 KiB slots hold 41 of these rows, a ring eight slots: about 150 answers for each pull.
      std::vector<std::vector<RowId>> ids;
      std::vector<std::vector<float>> out;
      std::vector<PullHandle> tickets;
      for (std::uint64_t k = 0; k < 6; ++k) {
        ids.push_back(k == 2 ? std::vector<RowId>{} : range(k, kRows, k + 1));
        out.emplace_back(ids.back().size() * spec.dim, -77.0F);
        tickets.push_back(w.client.initiate_pull(table, ids.back(), out.back().data(), 0, kPullAdmit));
      }
      for (const std::size_t k : {4U, 2U, 5U, 0U, 3U, 1U}) {
        w.client.complete_pull(tickets[k]);
        ASSERT_NO_FATAL_FAILURE(reference.expect_equal(ids[k], out[k]));
      }
      EXPECT_EQ(w.client.counters().rows_pulled,
                std::accumulate(ids.begin(), ids.end(), std::size_t{0},
                                [](std::size_t n, const auto& v) { return n + v.size(); }));
      EXPECT_THROW(w.client.complete_pull(tickets[0]), CheckFailed);
      // Nothing moves for an empty pull or push.
      const ClientCounters before = w.client.counters();
      pull(w.client, table, {});
      w.client.push(table, {}, nullptr, {});
      EXPECT_EQ(w.client.counters().bytes_pulled, before.bytes_pulled);
      EXPECT_EQ(w.client.counters().bytes_pushed, before.bytes_pushed);
    });
  });
}

TEST_P(ServerLoop, AssignedRowsAreThereAndTheirStateIsFresh) {
  for_each_cluster([](const Launch& launch) {
    run_cluster(launch, [](WorkerSide& w) {
      TableSpec spec = table_spec("t", TableKind::dynamic, 0, 10);
      spec.optimizer.kind = OptimizerKind::adagrad;
      const TableId table = w.client.create_table(spec);
      const auto ids = own_ids(w, true, 4000, 3000, 9);
      std::vector<float> grads(ids.size() * spec.dim, 3.0F), rows(grads.size());
      w.client.push(table, ids, grads.data(), {.learning_rate = 0.1F});
      for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 1000);
      w.client.assign(table, ids, rows.data());
      EXPECT_EQ(pull(w.client, table, ids), rows);
      // With a fresh accumulator the first step of adagrad is the learning rate, whatever the gradient is.
      w.client.push(table, ids, grads.data(), {.learning_rate = 0.5F});
      const auto after = pull(w.client, table, ids);
      for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_NEAR(after[i], rows[i] - 0.5F, 1e-3) << i;
    });
  });
}

TEST_P(ServerLoop, RequestsGoOnWhilePullsWaitForTheNextStep) {
  // Bound 0: the pull of step 1 waits for our own clock and is larger than the rings. What step 0 still needs
  // must not wait behind it.
  for_each_cluster(
      [](const Launch& launch) {
        run_cluster(launch, [](WorkerSide& w) {
          constexpr std::uint64_t kRows = 3000;
          const TableSpec spec = table_spec("t", TableKind::static_rows, kRows, 24);
          const TableId table = w.client.create_table(spec),
                        other = w.client.create_table(table_spec("u", TableKind::dynamic, 0, 24));
          Reference reference(spec);
          const auto ids = range(0, kRows);
          std::vector<float> ahead(kRows * spec.dim, -77.0F);
          auto ticket = w.client.initiate_pull(table, ids, ahead.data(), 1, kPullAdmit);
          w.client.pump();
          const auto own = own_ids(w, true, 4000, 500, 3);
          std::vector<float> rows(own.size() * spec.dim, 2.0F);
          w.client.assign(other, own, rows.data());
          EXPECT_EQ(pull(w.client, other, own, 0), rows);
          ASSERT_NO_FATAL_FAILURE(reference.expect_equal(ids, pull(w.client, table, ids, 0)));
          ASSERT_NO_FATAL_FAILURE(reference.expect_equal(ids, pull(w.client, table, ids, 7, kPullUngated)));
          w.client.flush();
          w.client.command(R"({"op": "statistics"})");
          EXPECT_TRUE(std::all_of(ahead.begin(), ahead.end(), [](float x) { return x == -77.0F; }))
              << "the gate was open";
          w.client.clock(1, 0);
          w.client.complete_pull(ticket);
          ASSERT_NO_FATAL_FAILURE(reference.expect_equal(ids, ahead));
        });
      },
      0);
}

TEST_P(ServerLoop, ErrorsAreAnsweredAndTheServersGoOn) {
  for_each_cluster([](const Launch& launch) {
    run_cluster(launch, [](WorkerSide& w) {
      const TableSpec spec = table_spec("clicks", TableKind::static_rows, 100, 4);
      const TableId table = w.client.create_table(spec);
      Reference reference(spec);
      const auto ids = range(0, 100);
      for (int round = 0; round < 3; ++round) {
        auto wrong = ids;
        wrong.push_back(123456);
        try {
          pull(w.client, table, wrong);
          ADD_FAILURE() << "an id out of range was answered";
        } catch (const DataError& e) {
          EXPECT_THAT(e.what(), HasSubstr("clicks"));
          EXPECT_THAT(e.what(), HasSubstr("123456"));
          EXPECT_EQ(e.exit_code(), ExitCode::data);
        }
        ASSERT_NO_FATAL_FAILURE(reference.expect_equal(ids, pull(w.client, table, ids)));
        EXPECT_THROW(w.client.command(R"({"op": "dance"})"), MpiError);
        EXPECT_THROW(w.client.command("no JSON"), Error);
        EXPECT_THROW(w.client.command("{}"), Error);
        // With one server both ids are in one message, which is stored as a whole or not at all.
        std::vector<float> rows = reference.row(7);
        if (w.client.num_servers() == 1) rows.assign(4, 99.0F);
        rows.resize(8);
        EXPECT_THROW(w.client.assign(table, std::vector<RowId>{7, 100}, rows.data()), DataError);
        w.client.flush();
      }
      EXPECT_EQ(w.client.command(R"({"op": "statistics"})").size(), w.client.num_servers());
      // A row that fits no slot.
      const std::uint32_t widest = w.client.widest_row_floats();
      EXPECT_THROW(w.client.create_table(table_spec("too_wide", TableKind::static_rows, 2, widest + 1)),
                   ConfigError);
      EXPECT_THROW(w.client.create_table(table_spec("no_columns", TableKind::static_rows, 2, 0)),
                   ConfigError);
      const TableSpec wide = table_spec("widest", TableKind::static_rows, 5, widest);
      const TableId widest_table = w.client.create_table(wide);
      Reference(wide).expect_equal(range(0, 5), pull(w.client, widest_table, range(0, 5)));
      std::vector<float> zeros(5 * widest, 0.0F);
      w.client.push(widest_table, range(0, 5), zeros.data(), {});
      w.client.flush();
    });
  });
}

TEST_P(ServerLoop, WorkersThatDisagreeAboutATableLearnIt) {
  for_each_cluster([](const Launch& launch) {
    run_cluster(launch, [](WorkerSide& w) {
      double refused = 0;
      try {
        w.client.create_table(table_spec("t", TableKind::static_rows, 10, 4 + w.id.value));
      } catch (const ConfigError& e) {
        EXPECT_THAT(e.what(), HasSubstr("disagree"));
        refused = 1;
      }
      // Every server has answered by now: nothing is left that could disturb what follows.
      w.client.flush();
      w.workers.all_reduce_sum(&refused, 1, "refusals");
      // One worker was first everywhere, or different ones were first on different servers.
      EXPECT_GE(refused, w.num_workers - 1);
      EXPECT_LE(refused, w.num_workers > 1 && w.client.num_servers() > 1 ? w.num_workers : w.num_workers - 1);
    });
  });
}

TEST_P(ServerLoop, AServerThatDoesNotAnswerIsAnErrorThatSaysWhatWasWaitedFor) {
  const Communicator world = Communicator::world();
  // Nobody runs the server loop.
  const RoleMap roles = test::role_map(std::string(static_cast<std::size_t>(world.size()), 'h'));
  const PoolLayout layout(roles, test::smallest_pool(roles));
  const auto window = make_window(GetParam(), layout.pool_bytes());
  ParameterClient client(*window, layout, roles, WorkerId{static_cast<std::uint32_t>(world.rank())}, 16, 0.3);
  try {
    client.flush();
    FAIL() << "a flush that nobody answers";
  } catch (const MpiError& e) {
    EXPECT_THAT(e.what(), HasSubstr("waited 0.3 s for every server's answer to a flush"));
  }
  world.barrier("all ranks");
}

}  // namespace
}  // namespace hf
