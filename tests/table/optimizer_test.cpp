// The formulas of the row optimizers, each against values of another implementation or against the paper in
// double.
#include "table/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.hpp"

namespace hf {
namespace {

constexpr float kGrads[3][3] = {{0.1F, -0.2F, 0.3F}, {-0.4F, 0.05F, 0.6F}, {0.7F, 0.8F, -0.9F}};

std::vector<float> three_steps(const OptimizerSpec& spec, float grad_scale = 1.0F) {
  std::vector<float> record(3 + optimizer_slots(spec.kind, 3), -7.0F);
  record[0] = 0.5F;
  record[1] = -0.25F;
  record[2] = 1.5F;
  init_optimizer_state(spec, 3, {.learning_rate = 0.1F}, record.data());
  for (Step t = 1; t <= 3; ++t) {
    float grad[3];
    for (int i = 0; i < 3; ++i) grad[i] = kGrads[t - 1][i] / grad_scale;
    apply_row(spec, 3, {.learning_rate = 0.1F, .grad_scale = grad_scale, .step = t}, grad, record.data());
  }
  return record;
}

void expect_weights(const std::vector<float>& record, double a, double b, double c) {
  EXPECT_NEAR(record[0], a, 2e-6);
  EXPECT_NEAR(record[1], b, 2e-6);
  EXPECT_NEAR(record[2], c, 2e-6);
}

OptimizerSpec make(OptimizerKind kind) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.learning_rate = 0.1F;
  spec.weight_decay = 0.01F;
  spec.initial_accumulator = 0.1F;
  return spec;
}

// Expected values: torch.optim.{SGD,Adagrad,Adam} of PyTorch 2.6 in double precision, lr 0.1, weight_decay
// 0.01, eps 1e-8, Adagrad's initial_accumulator_value 0.1, three steps with kGrads.
TEST(Optimizer, sgdIsTorchs) {
  expect_weights(three_steps(make(OptimizerKind::sgd)), 0.458481490, -0.314285730, 1.495624468);
}
TEST(Optimizer, adagradIsTorchs) {
  expect_weights(three_steps(make(OptimizerKind::adagrad)), 0.464291684, -0.299109821, 1.424476002);
}
TEST(Optimizer, adamIsTorchs) {
  expect_weights(three_steps(make(OptimizerKind::adam)), 0.420805893, -0.154685838, 1.307714590);
}

TEST(Optimizer, gradScaleMultipliesGradientsBeforeWeightDecay) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adagrad, OptimizerKind::rowwise_adagrad,
                                   OptimizerKind::adam, OptimizerKind::ftrl}) {
    const auto plain = three_steps(make(kind)), scaled = three_steps(make(kind), 0.25F);
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], scaled[i], 1e-6) << to_string(kind);
  }
}

TEST(Optimizer, rowwiseAdagradIsTheFormulaOfDlrm) {
  OptimizerSpec spec = make(OptimizerKind::rowwise_adagrad);
  for (const std::uint32_t dim : {1U, 7U, 8U, 16U, 17U, 40U}) {
    std::vector<float> record(dim + 1);
    std::vector<double> w(dim);
    SplitMix64 random(dim);
    for (std::uint32_t i = 0; i < dim; ++i) w[i] = record[i] = uniform_float(random());
    init_optimizer_state(spec, dim, {}, record.data());
    double sum = spec.initial_accumulator;
    for (int t = 0; t < 3; ++t) {
      std::vector<float> grad(dim);
      for (float& g : grad) g = uniform_float(random()) - 0.5F;
      apply_row(spec, dim, {.learning_rate = 0.1F}, grad.data(), record.data());
      double mean = 0;
      for (std::uint32_t i = 0; i < dim; ++i) mean += std::pow(grad[i] + 0.01 * w[i], 2) / dim;
      sum += mean;
      for (std::uint32_t i = 0; i < dim; ++i) w[i] -= 0.1 * (grad[i] + 0.01 * w[i]) / (std::sqrt(sum) + 1e-8);
    }
    EXPECT_NEAR(record[dim], sum, 1e-6);
    for (std::uint32_t i = 0; i < dim; ++i) EXPECT_NEAR(record[i], w[i], 2e-6);
  }
}

TEST(Optimizer, ftrlIsAlgorithm1OfMcMahan) {
  OptimizerSpec spec = make(OptimizerKind::ftrl);
  spec.l1 = 0.3F;
  spec.l2 = 0.05F;
  spec.ftrl_beta = 1.5F;
  const auto record = three_steps(spec);
  const double alpha = 0.1, beta = 1.5, l1 = 0.3, l2 = 0.05;
  const double start[3] = {0.5, -0.25, 1.5};
  for (int i = 0; i < 3; ++i) {
    double w = start[i], n = 0;
    double z = -w * (beta / alpha + l2) - (w > 0 ? l1 : -l1);
    for (const auto& grads : kGrads) {
      // The paper's order: weights from z and n, then the gradient, then z and n.
      const double solved =
          std::abs(z) <= l1 ? 0 : -(z - (z > 0 ? l1 : -l1)) / ((beta + std::sqrt(n)) / alpha + l2);
      EXPECT_NEAR(solved, w, 1e-12) << "the weights a row starts with are the solution of its state";
      const double g = grads[i];
      const double sigma = (std::sqrt(n + g * g) - std::sqrt(n)) / alpha;
      z += g - sigma * w;
      n += g * g;
      w = std::abs(z) <= l1 ? 0 : -(z - (z > 0 ? l1 : -l1)) / ((beta + std::sqrt(n)) / alpha + l2);
    }
    EXPECT_NEAR(record[static_cast<std::size_t>(i)], w, 3e-6);
    EXPECT_NEAR(record[static_cast<std::size_t>(3 + i)], z, 3e-5);
    EXPECT_NEAR(record[static_cast<std::size_t>(6 + i)], n, 1e-6);
  }
}

TEST(Optimizer, ftrlGivesExactZerosAndSurvivesARateOfZero) {
  OptimizerSpec spec = make(OptimizerKind::ftrl);
  spec.l1 = 1.0F;
  std::vector<float> record(3, 0.0F);
  init_optimizer_state(spec, 1, {.learning_rate = 0.1F}, record.data());
  const float small = 0.5F, large = 100.0F;
  apply_row(spec, 1, {.learning_rate = 0.1F}, &small, record.data());
  EXPECT_EQ(record[0], 0.0F) << "|z| ≤ l1";
  const auto before = record;
  apply_row(spec, 1, {.learning_rate = 0.0F}, &large, record.data());
  EXPECT_EQ(record, before);
  apply_row(spec, 1, {.learning_rate = 0.1F}, &large, record.data());
  EXPECT_LT(record[0], 0.0F);
  EXPECT_TRUE(std::isfinite(record[0]));
  spec.ftrl_beta = 0.0F;  // no curvature at all before the first gradient
  spec.l1 = 0.0F;
  spec.l2 = 0.0F;
  std::vector<float> bare(3, 0.0F);
  const float none = 0.0F;
  init_optimizer_state(spec, 1, {.learning_rate = 0.1F}, bare.data());
  apply_row(spec, 1, {.learning_rate = 0.1F}, &none, bare.data());
  EXPECT_EQ(bare[0], 0.0F);
}

TEST(Optimizer, updatesLargeBlocksToo) {
  constexpr std::uint32_t kDim = 10'007;  // a dense parameter block is one long record
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adagrad, OptimizerKind::adam}) {
    const OptimizerSpec spec = make(kind);
    std::vector<float> block(kDim + optimizer_slots(kind, kDim)), grad(kDim);
    SplitMix64 random(2);
    for (std::uint32_t i = 0; i < kDim; ++i) {
      block[i] = uniform_float(random());
      grad[i] = uniform_float(random());
    }
    init_optimizer_state(spec, kDim, {}, block.data());
    std::vector<float> one(1 + optimizer_slots(kind, 1));
    one[0] = block[kDim - 1];
    init_optimizer_state(spec, 1, {}, one.data());
    apply_row(spec, kDim, {}, grad.data(), block.data());
    apply_row(spec, 1, {}, &grad[kDim - 1], one.data());
    EXPECT_EQ(block[kDim - 1], one[0]) << to_string(kind);
  }
}

}  // namespace
}  // namespace hf
