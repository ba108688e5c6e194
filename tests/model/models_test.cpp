// Every model: its plan, its shapes, its formula against plain torch code, its gradients against differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "core/error.hpp"
#include "model/interactions.hpp"
#include "model/model.hpp"

namespace hf {
namespace {

using torch::Tensor;

constexpr ModelKind kAll[] = {ModelKind::lr,     ModelKind::fm,   ModelKind::wide_deep,
                              ModelKind::deepfm, ModelKind::dlrm, ModelKind::dcnv2};

TableConfig table(const std::string& name, std::uint32_t dim) {
  TableConfig t;
  t.name = name;
  t.rows = 100;
  t.dim = dim;
  t.kind = TableKind::static_rows;
  t.wrap_ids = false;
  t.init = InitKind::uniform;
  t.init_scale = 0.01F;
  t.optimizer = OptimizerSpec{};
  return t;
}

SparseFeature feature(const std::string& name, const std::string& table_name,
                      Pooling pooling = Pooling::sum) {
  SparseFeature f;
  f.name = name;
  f.table = table_name;
  f.pooling = pooling;
  f.rows = 100;
  return f;
}

Config config_of(ModelKind kind) {
  Config config;
  config.seed = 11;
  config.model.name = kind;
  config.model.hidden = {6, 5};
  config.model.bottom_hidden = {7};
  config.embedding.dim = 4;
  return config;
}

// `sparse` features; the first two share a table.
Schema schema_of(std::size_t num_dense, std::size_t sparse, std::uint32_t dim = 4) {
  Schema schema;
  for (std::size_t i = 0; i < num_dense; ++i) schema.dense.push_back("I" + std::to_string(i));
  for (std::size_t i = 0; i < sparse; ++i) {
    const std::string name = i < 2 ? "shared" : "C" + std::to_string(i);
    if (i != 1) schema.tables.push_back(table(name, dim));
    schema.sparse.push_back(feature("C" + std::to_string(i), name, i == 2 ? Pooling::mean : Pooling::sum));
  }
  return schema;
}

struct Inputs {
  Tensor dense;
  std::vector<Tensor> groups;
};

Inputs inputs_of(const Config& config, const Schema& schema, std::int64_t batch, torch::ScalarType type) {
  torch::manual_seed(21);
  Inputs in;
  in.dense = torch::randn({batch, static_cast<std::int64_t>(schema.num_dense())}, type);
  for (const auto& group : make_embedding_plan(config, schema).groups)
    in.groups.push_back(
        torch::randn({batch, static_cast<std::int64_t>(group.lookups.size()), group.dim}, type));
  return in;
}

// Double precision, and no parameter left at its initial zero.
std::shared_ptr<CtrModel> double_model(const Config& config, const Schema& schema) {
  auto model = make_model(config, schema);
  model->to(torch::kDouble);
  torch::manual_seed(31);
  torch::NoGradGuard no_grad;
  for (auto& p : model->parameters()) p.add_(torch::randn_like(p), 0.3);
  return model;
}

Tensor naive_mlp(const torch::nn::Module& model, const std::string& prefix, Tensor x,
                 bool relu_last = false) {
  const auto parameters = model.named_parameters();
  for (int layer = 0; parameters.contains(prefix + ".weight" + std::to_string(layer)); ++layer) {
    const bool last = !parameters.contains(prefix + ".weight" + std::to_string(layer + 1));
    x = torch::linear(x, parameters[prefix + ".weight" + std::to_string(layer)],
                      parameters[prefix + ".bias" + std::to_string(layer)]);
    if (!last || relu_last) x = torch::relu(x);
  }
  return x;
}

// The papers' formulas, written the slow way.
Tensor naive_forward(const Config& config, const CtrModel& model, const Inputs& in) {
  const auto parameters = model.named_parameters();
  const std::int64_t batch = in.dense.size(0);
  Tensor logit = torch::zeros({batch}, in.dense.options());
  const auto kind = config.model.name;
  if (parameters.contains("bias")) logit = logit + parameters["bias"];
  if (parameters.contains("dense_weight")) logit = logit + (in.dense * parameters["dense_weight"]).sum(1);
  if (kind == ModelKind::lr) return in.groups.empty() ? logit : logit + in.groups[0].sum(1).squeeze(1);
  if (kind == ModelKind::fm || kind == ModelKind::deepfm) {
    std::vector<Tensor> network_input;
    if (!in.groups.empty()) {
      const std::int64_t fields = in.groups[0].size(1), k = in.groups[0].size(2) - 1;
      for (std::int64_t f = 0; f < fields; ++f) {
        const auto v = in.groups[0].select(1, f);
        logit = logit + v.select(1, k);
        network_input.push_back(v.narrow(1, 0, k));
        for (std::int64_t g = 0; g < f; ++g)
          logit = logit + (v.narrow(1, 0, k) * in.groups[0].select(1, g).narrow(1, 0, k)).sum(1);
      }
    }
    if (kind == ModelKind::fm) return logit;
    network_input.push_back(in.dense);
    return logit + naive_mlp(model, "deep", torch::cat(network_input, 1)).squeeze(1);
  }
  std::vector<Tensor> flat;
  for (const auto& group : in.groups) flat.push_back(group.reshape({batch, group.size(1) * group.size(2)}));
  if (kind == ModelKind::wide_deep) {
    if (!flat.empty()) {
      logit = logit + flat.back().sum(1);
      flat.pop_back();
    }
    flat.push_back(in.dense);
    return logit + naive_mlp(model, "deep", torch::cat(flat, 1)).squeeze(1);
  }
  if (kind == ModelKind::dcnv2) {
    flat.push_back(in.dense);
    const auto x0 = torch::cat(flat, 1);
    auto x = x0;
    for (std::uint32_t l = 0; l < config.model.cross_layers; ++l) {
      const auto name = "cross" + std::to_string(l) + "_";
      auto w = parameters[name + "w"];
      if (config.model.cross_rank > 0) w = w.matmul(parameters[name + "v"]);
      x = x0 * (x.matmul(w.t()) + parameters[name + "b"]) + x;
    }
    return naive_mlp(model, "deep", x).squeeze(1);
  }
  std::vector<Tensor> vectors, top;
  if (in.dense.size(1) > 0) {
    vectors.push_back(naive_mlp(model, "bottom", in.dense, true));
    top.push_back(vectors[0]);
  } else {
    top.push_back(flat[0]);
  }
  if (!in.groups.empty())
    for (std::int64_t f = 0; f < in.groups[0].size(1); ++f) vectors.push_back(in.groups[0].select(1, f));
  for (std::size_t i = 1; i < vectors.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) top.push_back((vectors[i] * vectors[j]).sum(1, true));
  return naive_mlp(model, "top", torch::cat(top, 1)).squeeze(1);
}

struct Case {
  ModelKind kind;
  std::size_t num_dense, sparse;
  std::uint32_t cross_rank = 0;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ModelKind kind : kAll)
    for (const auto& [num_dense, sparse] : {std::pair{3, 5}, {0, 5}, {3, 0}, {1, 1}, {0, 1}})
      all.push_back({kind, static_cast<std::size_t>(num_dense), static_cast<std::size_t>(sparse)});
  all.push_back({ModelKind::dcnv2, 3, 5, 2});
  return all;
}

class Models : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    config = config_of(GetParam().kind);
    config.model.cross_rank = GetParam().cross_rank;
    schema = schema_of(GetParam().num_dense, GetParam().sparse);
  }
  Config config;
  Schema schema;
};

TEST_P(Models, ReturnsOneLogitPerRowForAnyBatch) {
  auto model = make_model(config, schema);
  for (const std::int64_t batch : {0, 1, 2, 67}) {
    auto in = inputs_of(config, schema, batch, torch::kFloat);
    for (auto& group : in.groups) group.requires_grad_();
    const auto logits = model->forward(in.dense, in.groups);
    EXPECT_EQ(logits.sizes(), std::vector<std::int64_t>{batch});
    logits.sum().backward();
    for (const auto& group : in.groups) EXPECT_EQ(group.grad().sizes(), group.sizes());
    for (const auto& p : model->parameters()) EXPECT_EQ(p.grad().sizes(), p.sizes());
  }
}

TEST_P(Models, EqualsThePapersFormula) {
  auto model = double_model(config, schema);
  const auto in = inputs_of(config, schema, 9, torch::kDouble);
  EXPECT_TRUE(
      torch::allclose(model->forward(in.dense, in.groups), naive_forward(config, *model, in), 1e-11, 1e-11));
}

TEST_P(Models, GradientsEqualDifferences) {
  auto model = double_model(config, schema);
  auto in = inputs_of(config, schema, 5, torch::kDouble);
  std::vector<Tensor> variables = model->parameters();
  for (auto& group : in.groups) variables.push_back(group.requires_grad_());
  if (in.dense.size(1) > 0) variables.push_back(in.dense.requires_grad_());
  const auto weight = torch::randn({5}, torch::kDouble);
  const auto loss = [&] { return (model->forward(in.dense, in.groups) * weight).sum(); };
  loss().backward();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    auto& variable = variables[i];
    const auto direction = torch::randn_like(variable);
    const double analytic = (variable.grad() * direction).sum().item<double>();
    constexpr double kStep = 1e-6;
    torch::NoGradGuard no_grad;
    variable.add_(direction, kStep);
    const double above = loss().item<double>();
    variable.add_(direction, -2 * kStep);
    const double below = loss().item<double>();
    variable.add_(direction, kStep);
    EXPECT_NEAR((above - below) / (2 * kStep), analytic, 1e-6 * (1 + std::abs(analytic))) << "variable " << i;
  }
}

TEST_P(Models, StartsFromTheSeedAlone) {
  torch::manual_seed(1);
  const auto a = make_model(config, schema)->named_parameters();
  torch::manual_seed(2);
  torch::rand({7});
  const auto b = make_model(config, schema)->named_parameters();
  ASSERT_EQ(a.size(), b.size());
  bool random = false;
  Config other = config;
  other.seed = 12;
  const auto c = make_model(other, schema)->named_parameters();
  for (const auto& item : a) {
    EXPECT_GT(item.value().numel(), 0) << item.key();
    EXPECT_TRUE(torch::equal(item.value(), b[item.key()])) << item.key();
    random = random || !torch::equal(item.value(), c[item.key()]);
  }
  const bool linear = config.model.name == ModelKind::lr || config.model.name == ModelKind::fm;
  EXPECT_EQ(random, !linear);
}

TEST_P(Models, RefusesInputsOfAnotherShape) {
  auto model = make_model(config, schema);
  auto in = inputs_of(config, schema, 4, torch::kFloat);
  EXPECT_THROW(model->forward(torch::zeros({4, in.dense.size(1) + 1}), in.groups), CheckFailed);
  auto more = in.groups;
  more.push_back(torch::zeros({4, 1, 1}));
  EXPECT_THROW(model->forward(in.dense, more), CheckFailed);
  if (in.groups.empty()) return;
  in.groups[0] = in.groups[0].narrow(0, 0, 3);
  EXPECT_THROW(model->forward(in.dense, in.groups), CheckFailed);
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(cases()), [](const auto& case_info) {
  const Case& c = case_info.param;
  return std::string(to_string(c.kind)) + "_" + std::to_string(c.num_dense) + "dense_" +
         std::to_string(c.sparse) + "sparse" +
         (c.cross_rank > 0 ? "_rank" + std::to_string(c.cross_rank) : "");
});

TEST(ModelDropout, FollowsTheModeAndTheSeed) {
  for (const ModelKind kind : {ModelKind::wide_deep, ModelKind::deepfm, ModelKind::dlrm, ModelKind::dcnv2}) {
    Config config = config_of(kind);
    const Schema schema = schema_of(3, 4);
    config.model.hidden = {50, 50};
    const auto in = inputs_of(config, schema, 20, torch::kFloat);
    const auto plain = make_model(config, schema)->forward(in.dense, in.groups);
    config.model.dropout = 0.5F;
    auto a = make_model(config, schema), b = make_model(config, schema);
    EXPECT_FALSE(torch::equal(a->forward(in.dense, in.groups), plain));
    EXPECT_TRUE(torch::equal(a->forward(in.dense, in.groups),
                             (b->forward(in.dense, in.groups), b->forward(in.dense, in.groups))));
    a->eval();
    EXPECT_TRUE(torch::equal(a->forward(in.dense, in.groups), plain));
  }
}

TEST(Model, NeedsAFeature) {
  for (const ModelKind kind : kAll) EXPECT_THROW(make_model(config_of(kind), schema_of(0, 0)), ConfigError);
}

TEST(Model, NoHiddenLayerIsALinearNetwork) {
  Config config = config_of(ModelKind::deepfm);
  config.model.hidden = {};
  const Schema schema = schema_of(3, 2);
  auto model = double_model(config, schema);
  const auto in = inputs_of(config, schema, 9, torch::kDouble);
  EXPECT_TRUE(
      torch::allclose(model->forward(in.dense, in.groups), naive_forward(config, *model, in), 1e-11, 1e-11));
}

// ------------------------------------------------------------------------------------------------- the plan

std::vector<std::string> names(const EmbeddingPlan& plan) {
  std::vector<std::string> all;
  for (const auto& t : plan.tables) all.push_back(t.name);
  return all;
}

// Features a, b, c, d over tables x (dim 4), x, y (dim 8), z (dim 4).
Schema mixed_schema() {
  Schema schema;
  schema.tables = {table("x", 4), table("y", 8), table("z", 4)};
  schema.sparse = {feature("a", "x"), feature("b", "x", Pooling::mean), feature("c", "y"), feature("d", "z")};
  return schema;
}

std::vector<std::pair<std::size_t, std::size_t>> pairs(const LookupGroup& group) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (const auto& lookup : group.lookups) all.emplace_back(lookup.feature, lookup.table);
  return all;
}

using testing::ElementsAre;
using testing::Pair;

TEST(EmbeddingPlan, LinearModelAsksForWeightsOfWidthOneThatStartAtZero) {
  const auto plan = make_embedding_plan(config_of(ModelKind::lr), mixed_schema());
  EXPECT_THAT(names(plan), ElementsAre("x", "y", "z"));
  for (const auto& t : plan.tables) {
    EXPECT_EQ(t.dim, 1u);
    EXPECT_EQ(t.init.zero_tail, 1u);
  }
  ASSERT_EQ(plan.groups.size(), 1u);
  EXPECT_EQ(plan.groups[0].dim, 1u);
  EXPECT_THAT(pairs(plan.groups[0]), ElementsAre(Pair(0, 0), Pair(1, 0), Pair(2, 1), Pair(3, 2)));
  EXPECT_EQ(plan.groups[0].lookups[0].pooling, Pooling::sum);
  EXPECT_EQ(plan.groups[0].lookups[1].pooling, Pooling::mean);
}

TEST(EmbeddingPlan, FactorizationModelsAskForALinearColumn) {
  for (const ModelKind kind : {ModelKind::fm, ModelKind::deepfm}) {
    const auto plan = make_embedding_plan(config_of(kind), schema_of(2, 4, 8));
    EXPECT_THAT(names(plan), ElementsAre("shared", "C2", "C3"));
    for (const auto& t : plan.tables) {
      EXPECT_EQ(t.dim, 9u);
      EXPECT_EQ(t.init.zero_tail, 1u);
      EXPECT_EQ(t.rows, 100u);
    }
    ASSERT_EQ(plan.groups.size(), 1u);
    EXPECT_EQ(plan.groups[0].dim, 9u);
    EXPECT_THAT(pairs(plan.groups[0]), ElementsAre(Pair(0, 0), Pair(1, 0), Pair(2, 1), Pair(3, 2)));
  }
}

TEST(EmbeddingPlan, CrossNetworkGroupsByWidth) {
  const auto plan = make_embedding_plan(config_of(ModelKind::dcnv2), mixed_schema());
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].dim, 4u);
  EXPECT_THAT(pairs(plan.groups[0]), ElementsAre(Pair(0, 0), Pair(1, 0), Pair(3, 2)));
  EXPECT_EQ(plan.groups[1].dim, 8u);
  EXPECT_THAT(pairs(plan.groups[1]), ElementsAre(Pair(2, 1)));
  for (const auto& t : plan.tables) EXPECT_EQ(t.init.zero_tail, 0u);
}

TEST(EmbeddingPlan, WideAndDeepHasTablesOfItsOwnForTheWidePart) {
  Config config = config_of(ModelKind::wide_deep);
  auto plan = make_embedding_plan(config, mixed_schema());
  EXPECT_THAT(names(plan), ElementsAre("x", "y", "z", "x.wide", "y.wide", "z.wide"));
  ASSERT_EQ(plan.groups.size(), 3u);
  EXPECT_EQ(plan.groups[0].dim, 4u);
  EXPECT_EQ(plan.groups[1].dim, 8u);
  EXPECT_EQ(plan.groups[2].dim, 1u);
  EXPECT_THAT(pairs(plan.groups[2]), ElementsAre(Pair(0, 3), Pair(1, 3), Pair(2, 4), Pair(3, 5)));
  EXPECT_EQ(plan.groups[2].lookups[1].pooling, Pooling::mean);
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(plan.tables[t].optimizer.kind, OptimizerKind::sgd);
    EXPECT_EQ(plan.tables[t + 3].optimizer.kind, OptimizerKind::ftrl);
    EXPECT_EQ(plan.tables[t + 3].dim, 1u);
    EXPECT_EQ(plan.tables[t + 3].init.zero_tail, 1u);
  }
  config.model.wide_optimizer = OptimizerSpec{.kind = OptimizerKind::adagrad, .learning_rate = 0.5F};
  plan = make_embedding_plan(config, mixed_schema());
  EXPECT_EQ(plan.tables[3].optimizer, *config.model.wide_optimizer);
}

TEST(EmbeddingPlan, WideGroupStaysApartFromDeepTablesOfWidthOne) {
  const auto plan = make_embedding_plan(config_of(ModelKind::wide_deep), schema_of(1, 2, 1));
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].dim, 1u);
  EXPECT_EQ(plan.groups[1].dim, 1u);
  EXPECT_THAT(pairs(plan.groups[1]), ElementsAre(Pair(0, 1), Pair(1, 1)));
}

TEST(EmbeddingPlan, UnequalDimsAreAnErrorThatNamesBoth) {
  for (const ModelKind kind : {ModelKind::fm, ModelKind::deepfm, ModelKind::dlrm}) {
    try {
      make_embedding_plan(config_of(kind), mixed_schema());
      FAIL() << to_string(kind);
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(),
                  testing::AllOf(testing::HasSubstr("'x' has dim 4"), testing::HasSubstr("'y' has dim 8"),
                                 testing::HasSubstr(to_string(kind))));
    }
  }
}

TEST(EmbeddingPlan, NoCategoricalFeaturesNoGroups) {
  for (const ModelKind kind : kAll) {
    const auto plan = make_embedding_plan(config_of(kind), schema_of(3, 0));
    EXPECT_TRUE(plan.tables.empty());
    EXPECT_TRUE(plan.groups.empty());
  }
}

}  // namespace
}  // namespace hf
