#include "model/learning_rate.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace hf {
namespace {

DenseOptimizerConfig schedule(DecayKind decay, std::uint64_t warmup, std::uint64_t decay_steps,
                              double final_factor) {
  DenseOptimizerConfig config;
  config.decay = decay;
  config.warmup_steps = warmup;
  config.decay_steps = decay_steps;
  config.decay_final = final_factor;
  return config;
}

TEST(LearningRate, IsOneWithoutASchedule) {
  EXPECT_EQ(learning_rate_factor({}, 0), 1.0);
  EXPECT_EQ(learning_rate_factor({}, 1'000'000), 1.0);
}

TEST(LearningRate, WarmsUpLinearly) {
  const auto config = schedule(DecayKind::none, 4, 0, 0);
  EXPECT_DOUBLE_EQ(learning_rate_factor(config, 0), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_factor(config, 2), 0.75);
  EXPECT_DOUBLE_EQ(learning_rate_factor(config, 3), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_factor(config, 4), 1.0);
}

TEST(LearningRate, DecaysFromTheEndOfWarmUp) {
  const auto linear = schedule(DecayKind::linear, 10, 110, 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_factor(linear, 10), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate_factor(linear, 60), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate_factor(linear, 110), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_factor(linear, 5000), 0.2);

  const auto cosine = schedule(DecayKind::cosine, 0, 100, 0.1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(cosine, 0), 1.0);
  EXPECT_NEAR(learning_rate_factor(cosine, 25), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(learning_rate_factor(cosine, 50), 0.55, 1e-12);
  EXPECT_NEAR(learning_rate_factor(cosine, 100), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate_factor(cosine, 101), 0.1, 1e-12);

  const auto exponential = schedule(DecayKind::exponential, 0, 100, 0.5);
  EXPECT_DOUBLE_EQ(learning_rate_factor(exponential, 0), 1.0);
  EXPECT_NEAR(learning_rate_factor(exponential, 50), std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(learning_rate_factor(exponential, 300), 0.125, 1e-12);
}

TEST(LearningRate, SurvivesDecayWithoutSteps) {
  EXPECT_DOUBLE_EQ(learning_rate_factor(schedule(DecayKind::linear, 10, 5, 0.3), 20), 0.3);
  EXPECT_EQ(learning_rate_factor(schedule(DecayKind::exponential, 0, 0, 0.3), 20), 1.0);
}

}  // namespace
}  // namespace hf
