// Synchronous training on servers and workers against one process of plain LibTorch: the same model, the same rows,
// every model × every row optimizer × (in turn) every dense optimizer.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "comm/mpi.hpp"
#include "core/random.hpp"
#include "ranks/api/context.hpp"
#include "ranks/worker/batch_pipeline.hpp"
#include "ranks/worker/session.hpp"
#include "table/table.hpp"

namespace hf {
namespace {

constexpr std::size_t kRowsPerBatch = 24, kFeatures = 4, kSteps = 100;
constexpr std::uint64_t kTableRows = 60;

// epsilon: adam divides by the size of a gradient; where that is all rounding, so is the quotient, however small.
std::string yaml(const std::string& model, const std::string& row_optimizer,
                 const std::string& dense_optimizer) {
  return "seed: 7\n"
         "data: {format: packed, train: [none.h5]}\n"
         "features:\n"
         "  default_buckets: 60\n"
         "  numeric: [a, b, c]\n"
         "  categorical:\n"
         "    - {name: f0, table: shared}\n"
         "    - {name: f1, separator: ' ', pooling: mean}\n"
         "    - {name: f2, separator: ' '}\n"
         "    - {name: f3, table: shared}\n"
         "tables: [{name: shared, rows: 60}]\n"
         "embedding: {dim: 6, init_scale: 0.2, optimizer: {name: " +
         row_optimizer +
         ", learning_rate: 0.03, epsilon: 1e-4, l1: 0.01, l2: 0.02}}\n"
         "model: {name: " +
         model +
         ", hidden: [16, 8], bottom_hidden: [8], cross_layers: 2}\n"
         "optimizer: {name: " +
         dense_optimizer +
         ", learning_rate: 0.02, epsilon: 1e-4}\n"
         "train: {staleness_bound: 0}\n";
}

/// Batch k of the data: a function of k alone. Feature 1 has empty bags.
Batch make_batch(std::size_t k) {
  SplitMix64 random(1000 + k);
  Batch b;
  b.rows = kRowsPerBatch;
  b.num_dense = 3;
  b.sparse.resize(kFeatures);
  for (std::size_t f : {1u, 2u}) b.sparse[f].offsets.push_back(0);
  for (std::size_t i = 0; i < b.rows; ++i) {
    for (int d = 0; d < 3; ++d) b.dense.push_back(2 * uniform_float(random()) - 1);
    for (std::size_t f = 0; f < kFeatures; ++f) {
      const std::size_t n = b.sparse[f].offsets.empty() ? 1 : random() % 4;
      for (std::size_t j = 0; j < n; ++j) b.sparse[f].ids.push_back(random() % kTableRows);
      if (!b.sparse[f].offsets.empty())
        b.sparse[f].offsets.push_back(static_cast<std::uint32_t>(b.sparse[f].ids.size()));
    }
    b.labels.push_back(uniform_float(random()) < 0.4F ? 1.0F : 0.0F);
  }
  return b;
}

/// A table with its row optimizer in plain tensors. Formulas: table/optimizer.hpp.
struct ReferenceTable {
  TableSpec spec;
  torch::Tensor w, s1, s2;

  explicit ReferenceTable(const TableSpec& s) : spec(s) {
    const auto rows = static_cast<std::int64_t>(s.rows), dim = static_cast<std::int64_t>(s.dim);
    w = torch::empty({rows, dim});
    for (std::int64_t r = 0; r < rows; ++r)
      initial_row(s, static_cast<RowId>(r), w.data_ptr<float>() + r * dim);
    s1 = torch::full({rows, s.optimizer.kind == OptimizerKind::rowwise_adagrad ? 1 : dim},
                     s.optimizer.initial_accumulator);
    s2 = torch::zeros({rows, dim});
    if (s.optimizer.kind == OptimizerKind::ftrl) {
      const OptimizerSpec& o = s.optimizer;
      s1 = -w * (o.ftrl_beta / o.learning_rate + o.l2) - torch::sign(w) * o.l1;  // z whose solution is w
    }
    w.requires_grad_(true);
  }
  void step(const torch::Tensor& touched, float scale, std::size_t t) {
    torch::NoGradGuard no_grad;
    const OptimizerSpec& o = spec.optimizer;
    const torch::Tensor g = w.grad().index_select(0, touched) * scale;
    torch::Tensor x = w.index_select(0, touched), a = s1.index_select(0, touched),
                  b = s2.index_select(0, touched);
    switch (o.kind) {
      case OptimizerKind::sgd:
        x = x - o.learning_rate * g;
        break;
      case OptimizerKind::adagrad:
        a = a + g * g;
        x = x - o.learning_rate * g / (a.sqrt() + o.epsilon);
        break;
      case OptimizerKind::rowwise_adagrad:
        a = a + (g * g).mean(1, true);
        x = x - o.learning_rate * g / (a.sqrt() + o.epsilon);
        break;
      case OptimizerKind::adam:
        a = o.beta1 * a + (1 - o.beta1) * g;
        b = o.beta2 * b + (1 - o.beta2) * g * g;
        x = x - o.learning_rate / (1 - std::pow(static_cast<double>(o.beta1), t)) * a /
                    (b.sqrt() / std::sqrt(1 - std::pow(static_cast<double>(o.beta2), t)) + o.epsilon);
        break;
      case OptimizerKind::ftrl: {
        const torch::Tensor n = b + g * g;
        a = a + g - (n.sqrt() - b.sqrt()) / o.learning_rate * x;
        b = n;
        x = torch::where(a.abs() <= o.l1, torch::zeros_like(a),
                         -(a - torch::sign(a) * o.l1) / ((o.ftrl_beta + n.sqrt()) / o.learning_rate + o.l2));
        break;
      }
    }
    w.index_copy_(0, touched, x);
    s1.index_copy_(0, touched, a);
    s2.index_copy_(0, touched, b);
    w.mutable_grad() = torch::Tensor();
  }
};

torch::Tensor pooled(const ReferenceTable& table, const SparseColumn& column, std::size_t rows, bool mean) {
  std::vector<torch::Tensor> out;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<std::int64_t> bag;
    for (std::size_t at = column.bag_begin(i); at < column.bag_end(i); ++at)
      bag.push_back(static_cast<std::int64_t>(column.ids[at]));
    if (bag.empty()) {
      out.push_back(torch::zeros({table.w.size(1)}));
      continue;
    }
    const torch::Tensor picked = table.w.index_select(0, torch::tensor(bag));
    out.push_back(mean ? picked.mean(0) : picked.sum(0));
  }
  return torch::stack(out);
}

std::unique_ptr<torch::optim::Optimizer> reference_optimizer(const OptimizerSpec& o,
                                                             const std::vector<torch::Tensor>& parameters) {
  switch (o.kind) {
    case OptimizerKind::adagrad:
      return std::make_unique<torch::optim::Adagrad>(
          parameters, torch::optim::AdagradOptions(o.learning_rate).eps(o.epsilon));
    case OptimizerKind::adam:
      return std::make_unique<torch::optim::Adam>(parameters,
                                                  torch::optim::AdamOptions(o.learning_rate).eps(o.epsilon));
    default:
      return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(o.learning_rate));
  }
}

struct Weights {
  std::vector<torch::Tensor> tables, dense;
};

Weights train_reference(const Plan& plan, std::size_t workers) {
  const auto network = make_model(plan.config, plan.schema);
  std::vector<ReferenceTable> tables;
  for (const TableSpec& t : plan.embeddings.tables) tables.emplace_back(t);
  const auto optimizer = network->parameters().empty()
                             ? nullptr
                             : reference_optimizer(plan.config.optimizer.optimizer, network->parameters());
  for (std::size_t t = 0; t < kSteps; ++t) {
    torch::Tensor loss = torch::zeros({});
    std::map<std::size_t, std::vector<std::int64_t>> touched;
    std::vector<Batch> batches;  // their memory is in the graph until backward
    for (std::size_t w = 0; w < workers; ++w) batches.push_back(make_batch(t * workers + w));
    for (const Batch& batch : batches) {
      std::vector<torch::Tensor> groups;
      for (const LookupGroup& g : plan.embeddings.groups) {
        std::vector<torch::Tensor> columns;
        for (const Lookup& l : g.lookups) {
          columns.push_back(
              pooled(tables[l.table], batch.sparse[l.feature], batch.rows, l.pooling == Pooling::mean));
          for (const RowId id : batch.sparse[l.feature].ids)
            touched[l.table].push_back(static_cast<std::int64_t>(id));
        }
        groups.push_back(torch::stack(columns, 1));
      }
      loss =
          loss + torch::binary_cross_entropy_with_logits(network->forward(dense_tensor(batch), groups),
                                                         label_tensor(batch), {}, {}, torch::Reduction::Sum);
    }
    loss = loss / static_cast<double>(workers * kRowsPerBatch);
    if (optimizer) optimizer->zero_grad();
    loss.backward();
    if (optimizer) optimizer->step();
    for (auto& [table, ids] : touched) {
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      tables[table].step(torch::tensor(ids), 1.0F, t + 1);
    }
  }
  Weights result;
  for (ReferenceTable& t : tables) result.tables.push_back(t.w.detach());
  for (const torch::Tensor& p : network->parameters()) result.dense.push_back(p.detach());
  return result;
}

/// Trains on the process group; the weights are returned on worker 0, nothing elsewhere.
Weights train_distributed(const Plan& plan, ProcessGroupOptions options) {
  Weights result;
  options.staleness_bound = plan.config.train.staleness_bound;
  options.buffer_pool_size = 1 << 20;  // small: pulls and pushes need several messages
  options.compute_threads = 1;
  const auto group = init_process_group(options);
  if (group->is_worker()) {
    WorkerModel model(plan);
    const auto workers = static_cast<std::size_t>(group->num_workers());
    std::vector<Batch> batches;
    std::vector<DistributedEmbeddingCollection::PreparedPtr> prepared;
    for (std::size_t t = 0; t < kSteps; ++t)
      batches.push_back(make_batch(t * workers + static_cast<std::size_t>(group->worker_id())));
    for (const Batch& b : batches) prepared.push_back(model.embeddings.prepare(id_bags(b), b.rows));
    for (std::size_t t = 0; t < kSteps; ++t) {
      if (t == 0) model.embeddings.initiate_pull(*prepared[0]);
      if (t + 1 < kSteps) model.embeddings.initiate_pull(*prepared[t + 1], 1);
      const torch::Tensor logits =
          model.network->forward(dense_tensor(batches[t]), model.embeddings.forward(*prepared[t]));
      torch::binary_cross_entropy_with_logits(logits, label_tensor(batches[t]), {}, {}, torch::Reduction::Sum)
          .backward();
      model.optimizer->step(static_cast<double>(batches[t].rows));
      model.optimizer->zero_grad();
    }
    group->synchronize();
    if (group->worker_id() == 0) {
      model.optimizer->pull_parameters();
      for (const torch::Tensor& p : model.network->parameters()) result.dense.push_back(p.detach().clone());
      ParameterClient& client = group->context()->client();
      for (std::size_t i = 0; i < plan.embeddings.tables.size(); ++i) {
        const TableSpec& spec = plan.embeddings.tables[i];
        std::vector<RowId> ids(spec.rows);
        for (std::size_t r = 0; r < ids.size(); ++r) ids[r] = r;
        torch::Tensor rows =
            torch::empty({static_cast<std::int64_t>(spec.rows), static_cast<std::int64_t>(spec.dim)});
        client.complete_pull(client.initiate_pull(*group->context()->tables[i]->id, ids,
                                                  rows.data_ptr<float>(), 0, kPullUngated));
        result.tables.push_back(rows);
      }
    }
    group->barrier("worker 0 to read the result");
  } else {
    group->serve();
  }
  destroy_process_group();
  return result;
}

double relative_error(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).norm().item<double>() / std::max(b.norm().item<double>(), 1e-30);
}

Plan plan_of(const std::string& model, const std::string& row, const std::string& dense) {
  Plan plan;
  plan.config = parse_config(yaml(model, row, dense), "test", {});
  plan.schema = make_schema(plan.config, {});
  plan.embeddings = make_embedding_plan(plan.config, plan.schema);
  return plan;
}

std::size_t default_workers(int ranks) { return ranks == 1 ? 1 : static_cast<std::size_t>(ranks) - 1; }

int world_size() { return Communicator::world().size(); }

class ModelsAndOptimizers : public testing::TestWithParam<int> {};

TEST_P(ModelsAndOptimizers, EqualOneProcessOfLibTorch) {
  const std::vector<std::string> models = {"lr", "fm", "wide_deep", "deepfm", "dlrm", "dcnv2"};
  const std::vector<std::string> rows = {"sgd", "adagrad", "rowwise_adagrad", "adam", "ftrl"},
                                 dense = {"sgd", "adagrad", "adam"};
  const auto m = static_cast<std::size_t>(GetParam());
  torch::set_num_threads(1);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::string d = dense[(m + r) % dense.size()];
    SCOPED_TRACE(models[m] + " rows " + rows[r] + " dense " + d);
    const Plan plan = plan_of(models[m], rows[r], d);
    const int ranks = world_size();
    const Weights got =
        train_distributed(plan, ranks == 1 ? ProcessGroupOptions{} : ProcessGroupOptions{.ps = 1});
    if (got.tables.empty()) continue;  // not worker 0
    const Weights want = train_reference(plan, default_workers(ranks));
    ASSERT_EQ(got.tables.size(), want.tables.size());
    ASSERT_EQ(got.dense.size(), want.dense.size());
    for (std::size_t i = 0; i < got.tables.size(); ++i)
      EXPECT_LE(relative_error(got.tables[i], want.tables[i]), 1e-5)
          << "table " << i << ": " << got.tables[i].norm() << want.tables[i].norm();
    for (std::size_t i = 0; i < got.dense.size(); ++i)
      EXPECT_LE(relative_error(got.dense[i], want.dense[i]), 1e-5)
          << "dense " << i << ": " << got.dense[i].norm() << want.dense[i].norm();
  }
}
INSTANTIATE_TEST_SUITE_P(All, ModelsAndOptimizers, testing::Range(0, 6));

TEST(Synchronous, BitIdenticalFromRunToRun) {
  const Plan plan = plan_of("deepfm", "adagrad", "adam");
  torch::set_num_threads(1);
  const ProcessGroupOptions options =
      world_size() == 1 ? ProcessGroupOptions{} : ProcessGroupOptions{.ps = 1};
  const Weights a = train_distributed(plan, options), b = train_distributed(plan, options);
  for (std::size_t i = 0; i < a.tables.size(); ++i)
    EXPECT_TRUE(torch::equal(a.tables[i], b.tables[i])) << "table " << i;
  for (std::size_t i = 0; i < a.dense.size(); ++i)
    EXPECT_TRUE(torch::equal(a.dense[i], b.dense[i])) << "dense " << i;
}

TEST(Synchronous, MpiTransportGivesTheSameBits) {
  const Plan plan = plan_of("dcnv2", "adam", "sgd");
  torch::set_num_threads(1);
  ProcessGroupOptions options = world_size() == 1 ? ProcessGroupOptions{} : ProcessGroupOptions{.ps = 1};
  const Weights a = train_distributed(plan, options);
  options.transport = "mpi";
  const Weights b = train_distributed(plan, options);
  for (std::size_t i = 0; i < a.tables.size(); ++i)
    EXPECT_TRUE(torch::equal(a.tables[i], b.tables[i])) << "table " << i;
  for (std::size_t i = 0; i < a.dense.size(); ++i)
    EXPECT_TRUE(torch::equal(a.dense[i], b.dense[i])) << "dense " << i;
}

// Two workers on four ranks: the same bits from two, three and four servers (hybrids hold shards, too).
TEST(Synchronous, NumberOfServersDoesNotMatter) {
  if (world_size() != 4) GTEST_SKIP() << "needs 4 ranks";
  const Plan plan = plan_of("wide_deep", "ftrl", "adagrad");
  torch::set_num_threads(1);
  const int rank = Communicator::world().rank();
  std::vector<Weights> results;
  for (const int hybrids : {0, 1, 2}) {
    ProcessGroupOptions options;
    options.role = rank < 2 ? "ps" : rank < 2 + hybrids ? "hybrid" : "worker";
    results.push_back(train_distributed(plan, options));
  }
  for (std::size_t k = 1; k < results.size(); ++k) {
    for (std::size_t i = 0; i < results[0].tables.size(); ++i)
      EXPECT_TRUE(torch::equal(results[0].tables[i], results[k].tables[i])) << k;
    for (std::size_t i = 0; i < results[0].dense.size(); ++i)
      EXPECT_TRUE(torch::equal(results[0].dense[i], results[k].dense[i])) << k;
  }
}

}  // namespace
}  // namespace hf
