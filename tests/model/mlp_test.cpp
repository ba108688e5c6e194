#include "model/mlp.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "model/finite.hpp"

namespace hf {
namespace {

using torch::Tensor;

// The same layers of torch::nn, with the same parameters.
torch::nn::Sequential twin_of(const Mlp& mlp, bool relu_last) {
  torch::nn::Sequential net;
  const auto parameters = mlp.parameters();
  for (std::size_t i = 0; i < parameters.size(); i += 2) {
    torch::nn::Linear linear(parameters[i].size(1), parameters[i].size(0));
    linear->to(parameters[i].scalar_type());
    torch::NoGradGuard no_grad;
    linear->weight.copy_(parameters[i]);
    linear->bias.copy_(parameters[i + 1]);
    net->push_back(linear);
    if (i + 2 < parameters.size() || relu_last) net->push_back(torch::nn::ReLU());
  }
  return net;
}

double relative_error(const Tensor& found, const Tensor& expected) {
  if (expected.numel() == 0) return found.sizes() == expected.sizes() ? 0.0 : 1.0;
  const double norm = expected.norm().item<double>();
  return (found - expected).norm().item<double>() / (norm > 0 ? norm : 1.0);
}

struct Case {
  std::vector<std::int64_t> widths;
  bool relu_last;
  std::int64_t batch;
};

class MlpEqualsSequential : public testing::TestWithParam<Case> {};

TEST_P(MlpEqualsSequential, InForwardAndBackward) {
  const auto& [widths, relu_last, batch] = GetParam();
  torch::manual_seed(1);
  Initializer init(5);
  Mlp mlp({widths, relu_last, 0.0, 0}, init);
  auto twin = twin_of(mlp, relu_last);
  const auto a = torch::randn({batch, widths.front()}).requires_grad_();
  const auto b = a.detach().clone().requires_grad_();
  const auto weight = torch::randn({batch, widths.back()});
  const auto y = mlp.forward(a);
  const auto z = twin->forward(b);
  ASSERT_EQ(y.sizes(), z.sizes());
  EXPECT_LE(relative_error(y, z), 1e-6);
  (y * weight).sum().backward();
  (z * weight).sum().backward();
  EXPECT_LE(relative_error(a.grad(), b.grad()), 1e-6);
  const auto p = mlp.parameters(), q = twin->parameters();
  ASSERT_EQ(p.size(), q.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    ASSERT_EQ(p[i].grad().sizes(), q[i].grad().sizes());
    EXPECT_LE(relative_error(p[i].grad(), q[i].grad()), 1e-6) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MlpEqualsSequential,
                         testing::Values(Case{{429, 400, 400, 400, 1}, false, 2048},
                                         Case{{7, 5, 1}, false, 3}, Case{{7, 5, 1}, false, 1},
                                         Case{{7, 5, 1}, false, 0}, Case{{13, 64, 16}, true, 130},
                                         Case{{13, 1, 4, 1}, true, 65}, Case{{9, 1}, false, 70},
                                         Case{{9, 3}, false, 70}, Case{{9, 3}, true, 0},
                                         Case{{33, 17, 2}, false, 129}));

TEST(Mlp, IsBitIdenticalFromRunToRun) {
  const auto run = [] {
    torch::manual_seed(2);
    Initializer init(5);
    Mlp mlp({{429, 400, 400, 1}, false, 0.0, 0}, init);
    const auto x = torch::randn({300, 429}).requires_grad_();
    const auto y = mlp.forward(x);
    y.square().sum().backward();
    std::vector<Tensor> all{y.detach(), x.grad()};
    for (const auto& p : mlp.parameters()) all.push_back(p.grad());
    return all;
  };
  const auto first = run(), second = run();
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(torch::equal(first[i], second[i])) << i;
}

TEST(Mlp, AccumulatesGradientsAndTakesStridedInput) {
  Initializer init(5);
  Mlp mlp({{4, 3, 1}, false, 0.0, 0}, init);
  auto twin = twin_of(mlp, false);
  const auto wide = torch::randn({6, 8});
  const auto x = wide.narrow(1, 2, 4);
  for (int i = 0; i < 2; ++i) {
    mlp.forward(x).sum().backward();
    twin->forward(x).sum().backward();
  }
  const auto p = mlp.parameters(), q = twin->parameters();
  for (std::size_t i = 0; i < p.size(); ++i) EXPECT_LE(relative_error(p[i].grad(), q[i].grad()), 1e-6) << i;
}

TEST(Mlp, LetsNaNThrough) {
  Initializer init(5);
  Mlp mlp({{4, 3, 3, 1}, false, 0.0, 0}, init);
  auto x = torch::ones({2, 4});
  x[1][2] = std::numeric_limits<float>::quiet_NaN();
  const auto y = mlp.forward(x);
  EXPECT_TRUE(std::isfinite(y[0].item<float>()));
  EXPECT_TRUE(std::isnan(y[1].item<float>()));
  y.sum().backward();
  EXPECT_FALSE(all_finite(mlp.parameters()[0].grad()));
}

TEST(Mlp, RefusesTheWrongWidth) {
  Initializer init(5);
  Mlp mlp({{4, 1}, false, 0.0, 0}, init);
  EXPECT_THROW(mlp.forward(torch::ones({2, 5})), CheckFailed);
}

Mlp dropout_mlp(std::vector<std::int64_t> widths, double dropout, std::uint64_t seed) {
  Initializer init(5);
  Mlp mlp({std::move(widths), false, dropout, seed}, init);
  return mlp;
}

TEST(MlpDropout, IsOffInEvaluationAndReproducibleInTraining) {
  const auto x = torch::randn({64, 20});
  auto plain = dropout_mlp({20, 50, 1}, 0.0, 1), a = dropout_mlp({20, 50, 1}, 0.4, 1),
       b = dropout_mlp({20, 50, 1}, 0.4, 1), other = dropout_mlp({20, 50, 1}, 0.4, 2);
  a.eval();
  EXPECT_TRUE(torch::equal(a.forward(x), plain.forward(x)));
  a.train();
  torch::manual_seed(77);
  const auto a1 = a.forward(x), a2 = a.forward(x);
  torch::manual_seed(78);
  torch::rand({5});
  const auto b1 = b.forward(x), b2 = b.forward(x);
  EXPECT_TRUE(torch::equal(a1, b1));
  EXPECT_TRUE(torch::equal(a2, b2));
  EXPECT_FALSE(torch::equal(a1, a2));
  EXPECT_FALSE(torch::equal(a1, other.forward(x)));
}

TEST(MlpDropout, DropsTheAskedShareAndKeepsTheMean) {
  Initializer init(5);
  Mlp mlp({{1, 401}, true, 0.3, 9}, init);
  {
    torch::NoGradGuard no_grad;
    mlp.parameters()[0].zero_();
    mlp.parameters()[1].fill_(1.0);
  }
  const auto y = mlp.forward(torch::zeros({1000, 1}));
  EXPECT_NEAR((y == 0).to(torch::kFloat).mean().item<double>(), 0.3, 0.005);  // 6 standard errors
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.01);
  EXPECT_NEAR(y.max().item<double>(), 1.0 / 0.7, 1e-6);
  // Neither rows nor columns share their masks.
  EXPECT_LT((y == 0).to(torch::kFloat).mean(0).max().item<double>(), 0.45);
  EXPECT_LT((y == 0).to(torch::kFloat).mean(1).max().item<double>(), 0.45);
}

TEST(MlpDropout, GradientsAreThoseOfTheMaskedNetwork) {
  // The first pass of an equal object draws the same masks, so differences can be taken.
  const auto loss_at = [](const Tensor& x, const Tensor& first_weight_shift) {
    auto mlp = dropout_mlp({6, 9, 8, 1}, 0.3, 4);
    mlp.to(torch::kDouble);
    {
      torch::NoGradGuard no_grad;
      mlp.parameters()[0].add_(first_weight_shift);
    }
    return mlp.forward(x).square().sum().item<double>();
  };
  torch::manual_seed(3);
  const auto x = torch::randn({12, 6}, torch::kDouble).requires_grad_();
  auto mlp = dropout_mlp({6, 9, 8, 1}, 0.3, 4);
  mlp.to(torch::kDouble);
  mlp.forward(x).square().sum().backward();
  const auto direction_x = torch::randn_like(x), direction_w = torch::randn({9, 6}, torch::kDouble);
  const double e = 1e-6;
  const double numeric =
      (loss_at(x + e * direction_x, e * direction_w) - loss_at(x - e * direction_x, -e * direction_w)) /
      (2 * e);
  const double analytic = (x.grad() * direction_x).sum().item<double>() +
                          (mlp.parameters()[0].grad() * direction_w).sum().item<double>();
  EXPECT_NEAR(numeric, analytic, 1e-6 * std::abs(analytic));
}

TEST(Initializer, DependsOnTheSeedAlone) {
  torch::manual_seed(1);
  Initializer a(7);
  const auto w = a.linear_weight(30, 25);
  torch::manual_seed(2);
  torch::rand({3});
  Initializer b(7), c(8);
  EXPECT_TRUE(torch::equal(w, b.linear_weight(30, 25)));
  EXPECT_FALSE(torch::equal(w, c.linear_weight(30, 25)));
  EXPECT_LE(w.abs().max().item<double>(), 0.2);
  EXPECT_GT(w.abs().max().item<double>(), 0.19);
  // The global generator was not advanced.
  torch::manual_seed(3);
  const auto expected = torch::rand({2});
  torch::manual_seed(3);
  Initializer(9).xavier_normal(4, 4);
  EXPECT_TRUE(torch::equal(expected, torch::rand({2})));
}

TEST(AllFinite, SeesEveryElement) {
  for (const std::int64_t n : {1, 31, 32, 33, 100}) {
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
      const auto x = torch::full({n}, -3.0, type);
      EXPECT_TRUE(all_finite(x));
      for (std::int64_t i = 0; i < n; ++i)
        for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
          auto y = x.clone();
          y[i] = bad;
          EXPECT_FALSE(all_finite(y)) << n << " " << i << " " << bad;
        }
    }
  }
  EXPECT_TRUE(all_finite(torch::empty({0})));
  EXPECT_TRUE(all_finite(torch::ones({3}, torch::kInt)));
  auto strided = torch::ones({4, 4});
  strided[0][3] = HUGE_VAL;
  EXPECT_TRUE(all_finite(strided.narrow(1, 0, 3)));
  EXPECT_TRUE(all_finite(torch::full({64}, 3e38F)));  // their sum would overflow
}

}  // namespace
}  // namespace hf
