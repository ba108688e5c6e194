#include "core/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/random.hpp"

namespace hf {
namespace {

struct Sample {
  std::vector<float> logits, labels;
};

// Logits on a coarse grid, so that there are many ties; labels that follow them.
Sample make_sample(std::size_t n, std::uint64_t seed, double grid) {
  Sample sample;
  SplitMix64 random(seed);
  for (std::size_t i = 0; i < n; ++i) {
    double z = normal_double(random(), random()) * 2.0 - 0.7;
    if (grid > 0) z = std::round(z / grid) * grid;
    sample.logits.push_back(static_cast<float>(z));
    sample.labels.push_back(uniform_double(random()) < 1.0 / (1.0 + std::exp(-z)) ? 1.0F : 0.0F);
  }
  return sample;
}

double brute_force_auc(const Sample& s) {
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < s.logits.size(); ++i)
    for (std::size_t j = 0; j < s.logits.size(); ++j)
      if (s.labels[i] == 1.0F && s.labels[j] == 0.0F) {
        pairs += 1;
        won += s.logits[i] > s.logits[j] ? 1.0 : s.logits[i] == s.logits[j] ? 0.5 : 0.0;
      }
  return won / pairs;
}

TEST(Metrics, EqualsTheDefinitions) {
  for (const double grid : {0.0, 0.5}) {
    const Sample s = make_sample(700, 3, grid);
    Metrics metrics;
    metrics.add(s.logits, s.labels);
    const MetricsResult r = metrics.result();
    double loss = 0, predicted = 0, positives = 0;
    for (std::size_t i = 0; i < s.logits.size(); ++i) {
      const double p = 1.0 / (1.0 + std::exp(-static_cast<double>(s.logits[i])));
      loss -= s.labels[i] == 1.0F ? std::log(p) : std::log(1.0 - p);
      predicted += p;
      positives += s.labels[i];
    }
    const double n = 700, base = positives / n;
    EXPECT_EQ(r.rows, 700u);
    EXPECT_EQ(static_cast<double>(r.positives), positives);
    EXPECT_NEAR(r.auc, brute_force_auc(s), 1e-13);
    EXPECT_EQ(r.auc_error, 0.0);
    EXPECT_NEAR(r.logloss, loss / n, 1e-12);
    EXPECT_NEAR(r.calibration, predicted / positives, 1e-12);
    EXPECT_NEAR(r.normalized_entropy, loss / n / -(base * std::log(base) + (1 - base) * std::log(1 - base)),
                1e-12);
  }
}

TEST(Metrics, PerfectReversedAndConstantScores) {
  const std::vector<float> labels{0, 0, 1, 1};
  const auto auc = [&](std::vector<float> logits) {
    Metrics metrics;
    metrics.add(logits, labels);
    return metrics.result().auc;
  };
  EXPECT_EQ(auc({-2, -1, 1, 2}), 1.0);
  EXPECT_EQ(auc({2, 1, -1, -2}), 0.0);
  EXPECT_EQ(auc({3, 3, 3, 3}), 0.5);
}

TEST(Metrics, BucketsStayInsideTheStatedError) {
  for (const double scale : {1.0, 1e-4}) {  // 1e-4: the scores share some thirty buckets
    Sample s = make_sample(2000, 5, 0.0);
    for (float& z : s.logits) z = static_cast<float>(z * scale);
    Metrics exact, buckets(0), limited(1500);
    exact.add(s.logits, s.labels);
    buckets.add(s.logits, s.labels);
    limited.add(std::span(s.logits).first(1000), std::span(s.labels).first(1000));
    EXPECT_TRUE(limited.exact());
    limited.add(std::span(s.logits).subspan(1000), std::span(s.labels).subspan(1000));
    EXPECT_FALSE(limited.exact());
    const auto e = exact.result(), b = buckets.result(), l = limited.result();
    EXPECT_LE(std::abs(b.auc - e.auc), b.auc_error);
    EXPECT_GT(b.auc_error, 0.0);
    EXPECT_LT(b.auc_error, scale == 1.0 ? 1e-4 : 0.1);
    EXPECT_EQ(b.auc, l.auc);
    EXPECT_EQ(b.auc_error, l.auc_error);
    EXPECT_NEAR(b.logloss, e.logloss, 1e-12);
  }
}

TEST(Metrics, BucketsHoldScoresOutsideTheirRange) {
  Metrics metrics(0);
  const float inf = std::numeric_limits<float>::infinity();
  metrics.add(std::vector<float>{-inf, -1e30F, 1e30F, inf, 32.0F, -32.0F},
              std::vector<float>{0, 0, 1, 1, 1, 0});
  EXPECT_EQ(metrics.result().auc, 1.0);
  EXPECT_EQ(metrics.result().logloss, std::log1p(std::exp(-32.0)) / 3.0);
}

TEST(Metrics, MergedPartsGiveTheResultOfOne) {
  for (const std::uint64_t limit : {std::uint64_t{10000}, std::uint64_t{1000}, std::uint64_t{0}}) {
    Metrics whole(limit), root(limit);
    for (std::uint64_t worker = 0; worker < 3; ++worker) {
      const Sample s = make_sample(worker == 1 ? 0 : 800, worker + 10, 0.25);
      whole.add(s.logits, s.labels);
      Metrics part(limit);
      part.add(s.logits, s.labels);
      root.merge(part.serialize());
    }
    const auto a = whole.result(), b = root.result();
    EXPECT_EQ(a.rows, 1600u);
    EXPECT_EQ(a.rows, b.rows);
    EXPECT_EQ(a.positives, b.positives);
    EXPECT_EQ(a.auc, b.auc);
    EXPECT_EQ(a.auc_error, b.auc_error);
    EXPECT_EQ(whole.exact(), limit == 10000);
    EXPECT_EQ(root.exact(), limit == 10000);
    EXPECT_NEAR(a.logloss, b.logloss, 1e-13);
    EXPECT_NEAR(a.calibration, b.calibration, 1e-13);
  }
}

TEST(Metrics, MergesBucketsIntoExactAndBack) {
  const Sample s = make_sample(500, 8, 0.0);
  Metrics exact, buckets(0);
  exact.add(s.logits, s.labels);
  buckets.add(s.logits, s.labels);
  Metrics a, b(0);
  a.merge(exact.serialize());
  a.merge(buckets.serialize());
  b.merge(buckets.serialize());
  b.merge(exact.serialize());
  EXPECT_EQ(a.rows(), 1000u);
  EXPECT_EQ(a.result().auc, b.result().auc);
  EXPECT_LE(std::abs(a.result().auc - exact.result().auc), a.result().auc_error);
}

TEST(Metrics, UndefinedIsNaN) {
  Metrics none;
  EXPECT_TRUE(std::isnan(none.result().auc));
  EXPECT_TRUE(std::isnan(none.result().logloss));
  for (const std::uint64_t limit : {std::uint64_t{100}, std::uint64_t{0}}) {
    Metrics negatives(limit);
    negatives.add(std::vector<float>{0.0F, 1.0F}, std::vector<float>{0, 0});
    const auto r = negatives.result();
    EXPECT_TRUE(std::isnan(r.auc));
    EXPECT_TRUE(std::isnan(r.normalized_entropy));
    EXPECT_TRUE(std::isnan(r.calibration));
    EXPECT_NEAR(r.logloss, (std::log(2.0) + std::log1p(std::exp(1.0))) / 2, 1e-12);
    Metrics broken(limit);
    broken.add(std::vector<float>{0.0F, std::nanf(""), 1.0F}, std::vector<float>{0, 1, 1});
    EXPECT_EQ(broken.result().rows, 3u);
    EXPECT_TRUE(std::isnan(broken.result().auc));
    EXPECT_TRUE(std::isnan(broken.result().logloss));
    Metrics root(limit);
    root.merge(broken.serialize());
    EXPECT_TRUE(std::isnan(root.result().logloss));
  }
}

TEST(Metrics, ClearForgets) {
  Metrics metrics(1);
  metrics.add(std::vector<float>{1, 2}, std::vector<float>{0, 1});
  EXPECT_FALSE(metrics.exact());
  metrics.clear();
  EXPECT_TRUE(metrics.exact());
  EXPECT_EQ(metrics.rows(), 0u);
}

TEST(Metrics, RefusesDamagedParts) {
  for (const std::uint64_t limit : {std::uint64_t{1000}, std::uint64_t{0}}) {
    Metrics source(limit);
    const Sample s = make_sample(50, 2, 0.0);
    source.add(s.logits, s.labels);
    const auto good = source.serialize();
    Metrics root(limit);
    for (std::size_t size = 0; size < good.size(); ++size)
      EXPECT_THROW(root.merge(std::span(good).first(size)), FormatError) << size;
    auto longer = good;
    longer.push_back(std::byte{0});
    EXPECT_THROW(root.merge(longer), FormatError);
    for (const std::size_t at : {0, 4, 8, 49}) {  // magic, kind, rows, a high byte of the count
      auto damaged = good;
      damaged[at] ^= std::byte{0x40};
      EXPECT_THROW(root.merge(damaged), FormatError) << at;
    }
    EXPECT_EQ(root.rows(), 0u);
    EXPECT_EQ(root.exact(), Metrics(limit).exact());
  }
}

}  // namespace
}  // namespace hf
