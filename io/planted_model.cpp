#include "io/planted_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace hf {
namespace {

constexpr std::size_t kNumericLevels = 4096;  // values per numeric field
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

// Every use of the seed has its own key; the sets of rows have the first ones.
enum Key : std::uint64_t { kNumericParameters = 16, kWeights, kVectors, kTexts };

/// Murmur3's finaliser: a bijection of 32 bits, so that no two categories of a field share a text.
constexpr std::uint32_t scramble(std::uint32_t x) noexcept {
  x = (x ^ (x >> 16)) * 0x85ebca6bU;
  x = (x ^ (x >> 13)) * 0xc2b2ae35U;
  return x ^ (x >> 16);
}

double normal(std::uint64_t key) noexcept { return normal_double(mix64(key), mix64(key + 1)); }

}  // namespace

double sigmoid(double z) noexcept {
  return z >= 0 ? 1 / (1 + std::exp(-z)) : std::exp(z) / (1 + std::exp(z));
}

PlantedModel::AliasTable::AliasTable(const std::vector<double>& weights) : cells_(weights.size()) {
  const std::size_t n = weights.size();
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> scaled(n);
  std::vector<std::uint32_t> small, large;
  for (std::size_t i = 0; i < n; ++i) {
    scaled[i] = weights[i] * static_cast<double>(n) / total;
    (scaled[i] < 1 ? small : large).push_back(static_cast<std::uint32_t>(i));
  }
  while (!small.empty() && !large.empty()) {
    const std::uint32_t s = small.back(), l = large.back();
    small.pop_back();
    cells_[s] = {static_cast<std::uint32_t>(std::min(scaled[s] * 0x1p32, 0x1p32 - 1)), l};
    scaled[l] -= 1 - scaled[s];
    if (scaled[l] < 1) {
      large.pop_back();
      small.push_back(l);
    }
  }
  for (const auto* rest : {&small, &large})
    for (const std::uint32_t i : *rest) cells_[i] = {~0U, i};
}

void PlantedModel::Field::add(const std::string& text, double contribution) {
  Entry e;
  HF_CHECK(text.size() <= e.text.size(), "texts of 11 bytes at most");
  std::memcpy(e.text.data(), text.data(), text.size());
  e.length = static_cast<std::uint8_t>(text.size());
  e.contribution = static_cast<float>(contribution);
  entries.push_back(e);
}

PlantedModel::PlantedModel(const SynthOptions& options, std::vector<std::uint64_t> vocabulary)
    : options_(options), vocabulary_(std::move(vocabulary)), fields_(kFields) {
  HF_CHECK(vocabulary_.size() == kCategorical, "a vocabulary size per categorical field");
  for (std::size_t j = 0; j < kNumeric; ++j) build_numeric(j);
  for (std::size_t f = 0; f < kCategorical; ++f) build_categorical(f);
  build_pairs();
  calibrate();
}

PlantedModel::Drawn PlantedModel::draw(Set set, std::uint64_t i, Row& row) const noexcept {
  const std::uint64_t key = mix64(mix64(options_.seed, static_cast<std::uint64_t>(set)), i);
  double z = bias_;
  for (std::size_t f = 0; f < kFields; ++f) {
    row[f] = fields_[f].sampler.draw(mix64(key + f * kGolden));
    z += static_cast<double>(fields_[f].entries[row[f]].contribution);
  }
  const std::size_t rank = options_.interaction_rank;
  for (const Pair& pair : pairs_) {
    const float* u = &pair.u[row[kNumeric + pair.first] * rank];
    const float* v = &pair.v[row[kNumeric + pair.second] * rank];
    for (std::size_t k = 0; k < rank; ++k) z += static_cast<double>(u[k]) * static_cast<double>(v[k]);
  }
  return {z, uniform_double(mix64(key + kFields * kGolden)) < sigmoid(z)};
}

void PlantedModel::print(const Row& row, bool label, std::string& out) const {
  out += label ? '1' : '0';
  for (std::size_t f = 0; f < kFields; ++f) {
    const Field::Entry& e = fields_[f].entries[row[f]];
    out += '\t';
    out.append(e.text.data(), e.length);
  }
  out += '\n';
}

/// The missing value takes its share from all others.
PlantedModel::AliasTable PlantedModel::sampler_of(std::vector<double> weights) const {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  weights.insert(weights.begin(), total * options_.missing_rate / (1 - options_.missing_rate));
  return AliasTable(weights);
}

/// Log-normal counts, as the log's integers are; I2 starts at -2 there, so it does here.
void PlantedModel::build_numeric(std::size_t j) {
  const std::uint64_t key = mix64(mix64(options_.seed, kNumericParameters), j);
  const double location = 0.5 + 3.0 * uniform_double(mix64(key, 1));
  const double spread = 0.8 + 0.6 * uniform_double(mix64(key, 2));
  const double slope = options_.numeric_scale * normal(mix64(key, 3)) / spread;
  for (std::size_t k = 0; k < kNumericLevels; ++k) {
    const double size = std::exp(location + spread * normal(mix64(mix64(key, 4), k)));
    auto value = static_cast<std::int64_t>(std::min(size, 1e9));
    if (j == 1) value -= 2;
    const double magnitude = std::log1p(std::abs(static_cast<double>(value)));
    fields_[j].add(std::to_string(value), slope * std::copysign(magnitude, static_cast<double>(value)));
  }
  fields_[j].sampler = sampler_of(std::vector<double>(kNumericLevels, 1.0));
}

std::vector<double> PlantedModel::zipf_weights(std::size_t f) const {
  std::vector<double> weights(vocabulary_[f]);
  for (std::size_t c = 0; c < weights.size(); ++c)
    weights[c] = std::pow(static_cast<double>(c + 1), -options_.zipf);
  return weights;
}

void PlantedModel::build_categorical(std::size_t f) {
  Field& field = fields_[kNumeric + f];
  const std::uint64_t key = mix64(mix64(options_.seed, kWeights), f);
  const auto salt = static_cast<std::uint32_t>(mix64(mix64(options_.seed, kTexts), f));
  field.entries.reserve(vocabulary_[f] + 1);
  for (std::size_t c = 0; c < vocabulary_[f]; ++c) {
    char text[9];
    std::snprintf(text, sizeof text, "%08x", scramble(static_cast<std::uint32_t>(c) + salt));
    field.add(text, options_.category_scale * normal(mix64(key, c)));
  }
  field.sampler = sampler_of(zipf_weights(f));
}

/// Joins the fields of the smallest vocabularies two by two, so that every combination is seen often.
void PlantedModel::build_pairs() {
  std::vector<std::size_t> order(kCategorical);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return vocabulary_[a] < vocabulary_[b]; });
  for (std::size_t p = 0; p < options_.interactions; ++p) {
    const std::size_t a = order[2 * p], b = order[2 * p + 1];
    pairs_.push_back({a, b, interaction_vectors(a), interaction_vectors(b)});
  }
}

/// Every coordinate has mean 0 over the field's rows, so that a pair adds nothing that a linear model could
/// take, and such a deviation that the pair's contribution has interaction_scale, whatever the seed.
std::vector<float> PlantedModel::interaction_vectors(std::size_t f) const {
  const std::size_t rank = options_.interaction_rank, categories = vocabulary_[f];
  const std::uint64_t key = mix64(mix64(options_.seed, kVectors), f);
  const double target = std::sqrt(options_.interaction_scale / std::sqrt(static_cast<double>(rank)));
  const std::vector<double> weights = zipf_weights(f);
  std::vector<float> out((categories + 1) * rank, 0.0F);
  for (std::size_t k = 0; k < rank; ++k) {
    double total = 0, mean = 0, squares = 0;
    for (std::size_t c = 0; c < categories; ++c) {
      const double x = normal(mix64(mix64(key, c), k));
      total += weights[c];
      mean += weights[c] * x;
      squares += weights[c] * x * x;
    }
    mean /= total;
    const double deviation = std::sqrt(std::max(squares / total - mean * mean, 0.0));
    if (deviation < 1e-9) continue;  // a single category
    for (std::size_t c = 0; c < categories; ++c)
      out[(c + 1) * rank + k] =
          static_cast<float>(target * (normal(mix64(mix64(key, c), k)) - mean) / deviation);
  }
  return out;
}

/// Bisects the bias until the mean probability of a fixed sample is the base rate.
void PlantedModel::calibrate() {
  std::vector<double> logits(20000);
  Row row;
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = draw(Set::calibration, i, row).logit;
  double low = -60, high = 60;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double z : logits) sum += sigmoid(z + middle);
    (sum / static_cast<double>(logits.size()) < options_.base_rate ? low : high) = middle;
  }
  bias_ = (low + high) / 2;
}

}  // namespace hf
