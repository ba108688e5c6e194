// The serialised form, all numbers in the byte order of the machine (it travels between ranks of one run):
//   part      := magic:u32 kind:u32 rows:u64 positives:u64 nan_rows:u64 loss_sum:f64 probability_sum:f64 body
//   kind      := 0 (exact) | 1 (buckets)
//   exact     := negatives:u64 positives:u64 logit:f32{negatives} logit:f32{positives}
//   buckets   := count:u64 bucket{count}                       only those that are not empty, ascending
//   bucket    := number:u32 negatives:u64 positives:u64
#include "core/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "core/error.hpp"

namespace hf {
namespace {

constexpr std::uint32_t kMagic = 0x4d455431;  // "MET1"
constexpr std::size_t kBuckets = std::size_t{1} << 20;
constexpr float kLogitRange = 32.0F;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Writer {
 public:
  template <class T>
  void put(const T& value) {
    put_array(&value, 1);
  }
  template <class T>
  void put_array(const T* values, std::size_t count) {
    const auto* from = reinterpret_cast<const std::byte*>(values);
    bytes_.insert(bytes_.end(), from, from + count * sizeof(T));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value;
    get_array(&value, 1);
    return value;
  }
  template <class T>
  void get_array(T* values, std::size_t count) {
    if (count > bytes_.size() / sizeof(T))
      throw FormatError("metrics part: expected " + std::to_string(count) + " more values of " +
                        std::to_string(sizeof(T)) + " bytes, found " + std::to_string(bytes_.size()) +
                        " bytes");
    if (count != 0) std::memcpy(values, bytes_.data(), count * sizeof(T));
    bytes_ = bytes_.subspan(count * sizeof(T));
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

// -log of the predicted probability of the label, and that probability of 1, without overflow for any logit.
double loss_of(double z, bool positive) {
  if (std::isinf(z)) return (z > 0) == positive ? 0.0 : std::numeric_limits<double>::infinity();
  return std::max(z, 0.0) - (positive ? z : 0.0) + std::log1p(std::exp(-std::abs(z)));
}
double probability_of(double z) {
  return z >= 0 ? 1.0 / (1.0 + std::exp(-z)) : std::exp(z) / (1.0 + std::exp(z));
}

}  // namespace

std::size_t Metrics::bucket_of(float logit) noexcept {
  constexpr float kPerLogit = static_cast<float>(kBuckets) / (2.0F * kLogitRange);
  const float position = (std::clamp(logit, -kLogitRange, kLogitRange) + kLogitRange) * kPerLogit;
  return std::min(static_cast<std::size_t>(position), kBuckets - 1);
}

void Metrics::place(float logit, bool positive) {
  if (exact()) {
    (positive ? positive_logits_ : negative_logits_).push_back(logit);
  } else {
    Bucket& bucket = buckets_[bucket_of(logit)];
    ++(positive ? bucket.positives : bucket.negatives);
  }
}

void Metrics::use_buckets() {
  if (!exact()) return;
  buckets_.resize(kBuckets);
  for (const float logit : negative_logits_) ++buckets_[bucket_of(logit)].negatives;
  for (const float logit : positive_logits_) ++buckets_[bucket_of(logit)].positives;
  negative_logits_ = {};
  positive_logits_ = {};
}

void Metrics::add(std::span<const float> logits, std::span<const float> labels) {
  HF_CHECK(logits.size() == labels.size(), "one label per logit");
  if (rows_ + logits.size() > exact_rows_) use_buckets();
  rows_ += logits.size();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool positive = labels[i] > 0.5F;
    positive_rows_ += positive ? 1 : 0;
    if (std::isnan(logits[i])) {
      ++nan_rows_;
      continue;
    }
    const double z = logits[i];
    loss_sum_ += loss_of(z, positive);
    probability_sum_ += probability_of(z);
    place(logits[i], positive);
  }
}

void Metrics::exact_auc(MetricsResult& result) const {
  // Mann–Whitney: the share of (positive, negative) pairs in the right order, a tie counting one half.
  std::vector<float> negatives = negative_logits_;
  std::vector<float> positives = positive_logits_;
  std::sort(negatives.begin(), negatives.end());
  std::sort(positives.begin(), positives.end());
  std::uint64_t twice_won = 0;  // < 2^64: at most 2 · (10^7)² / 4
  std::size_t below = 0, not_above = 0;
  for (const float p : positives) {
    while (below < negatives.size() && negatives[below] < p) ++below;
    while (not_above < negatives.size() && negatives[not_above] <= p) ++not_above;
    twice_won += below + not_above;
  }
  result.auc = static_cast<double>(twice_won) / 2.0 / static_cast<double>(negatives.size()) /
               static_cast<double>(positives.size());
}

void Metrics::bucket_auc(MetricsResult& result) const {
  double won = 0.0, undecided = 0.0, negatives_below = 0.0, positives = 0.0;
  for (const Bucket& bucket : buckets_) {
    const auto n = static_cast<double>(bucket.negatives);
    const auto p = static_cast<double>(bucket.positives);
    won += p * negatives_below;
    undecided += p * n;
    negatives_below += n;
    positives += p;
  }
  const double pairs = negatives_below * positives;
  result.auc = (won + undecided / 2.0) / pairs;
  result.auc_error = undecided / 2.0 / pairs;
}

MetricsResult Metrics::result() const {
  MetricsResult result{rows_, positive_rows_, kNaN, 0.0, kNaN, kNaN, kNaN};
  if (rows_ == 0 || nan_rows_ > 0) return result;
  const auto rows = static_cast<double>(rows_);
  const auto positives = static_cast<double>(positive_rows_);
  result.logloss = loss_sum_ / rows;
  if (positive_rows_ > 0) result.calibration = probability_sum_ / positives;
  if (positive_rows_ == 0 || positive_rows_ == rows_) return result;
  const double base = positives / rows;
  result.normalized_entropy = result.logloss / -(base * std::log(base) + (1.0 - base) * std::log1p(-base));
  if (exact())
    exact_auc(result);
  else
    bucket_auc(result);
  return result;
}

std::vector<std::byte> Metrics::serialize() const {
  Writer out;
  out.put(kMagic);
  out.put<std::uint32_t>(exact() ? 0 : 1);
  out.put(rows_);
  out.put(positive_rows_);
  out.put(nan_rows_);
  out.put(loss_sum_);
  out.put(probability_sum_);
  if (exact()) {
    out.put<std::uint64_t>(negative_logits_.size());
    out.put<std::uint64_t>(positive_logits_.size());
    out.put_array(negative_logits_.data(), negative_logits_.size());
    out.put_array(positive_logits_.data(), positive_logits_.size());
    return out.take();
  }
  const auto used = std::count_if(buckets_.begin(), buckets_.end(),
                                  [](const Bucket& b) { return b.negatives + b.positives > 0; });
  out.put(static_cast<std::uint64_t>(used));
  for (std::size_t i = 0; i < kBuckets; ++i) {
    if (buckets_[i].negatives + buckets_[i].positives == 0) continue;
    out.put(static_cast<std::uint32_t>(i));
    out.put(buckets_[i].negatives);
    out.put(buckets_[i].positives);
  }
  return out.take();
}

void Metrics::merge(std::span<const std::byte> part) {
  Reader in(part);
  if (in.get<std::uint32_t>() != kMagic) throw FormatError("metrics part: wrong magic number");
  const auto kind = in.get<std::uint32_t>();
  if (kind > 1) throw FormatError("metrics part: unknown kind " + std::to_string(kind));
  const auto rows = in.get<std::uint64_t>();
  const auto positives = in.get<std::uint64_t>();
  const auto nan_rows = in.get<std::uint64_t>();
  const auto loss_sum = in.get<double>();
  const auto probability_sum = in.get<double>();

  struct Entry {
    std::uint32_t number;
    Bucket bucket;
  };
  std::vector<float> logits;
  std::vector<Entry> entries;
  std::uint64_t negative_logits = 0;
  std::uint64_t found = 0;
  if (kind == 0) {
    negative_logits = in.get<std::uint64_t>();
    const auto positive_logits = in.get<std::uint64_t>();
    if (negative_logits > in.left() || positive_logits > in.left())
      throw FormatError("metrics part: expected " + std::to_string(negative_logits) + " + " +
                        std::to_string(positive_logits) + " logits, found " + std::to_string(in.left()) +
                        " bytes");
    found = negative_logits + positive_logits;
    if (found > in.left() / sizeof(float)) throw FormatError("metrics part: logits are missing at the end");
    logits.resize(found);
    in.get_array(logits.data(), logits.size());
  } else {
    const auto count = in.get<std::uint64_t>();
    if (count > kBuckets) throw FormatError("metrics part: " + std::to_string(count) + " buckets");
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto number = in.get<std::uint32_t>();
      if (number >= kBuckets) throw FormatError("metrics part: bucket " + std::to_string(number));
      const auto negatives = in.get<std::uint64_t>();
      entries.push_back({number, {negatives, in.get<std::uint64_t>()}});
      found += entries.back().bucket.negatives + entries.back().bucket.positives;
    }
  }
  if (in.left() != 0) throw FormatError("metrics part: " + std::to_string(in.left()) + " bytes too many");
  if (found + nan_rows != rows || positives > rows)
    throw FormatError("metrics part: expected " + std::to_string(rows) + " rows, found " +
                      std::to_string(found + nan_rows));

  if (kind == 1 || rows_ + rows > exact_rows_) use_buckets();
  rows_ += rows;
  positive_rows_ += positives;
  nan_rows_ += nan_rows;
  loss_sum_ += loss_sum;
  probability_sum_ += probability_sum;
  for (std::size_t i = 0; i < logits.size(); ++i) place(logits[i], i >= negative_logits);
  for (const Entry& entry : entries) {
    buckets_[entry.number].negatives += entry.bucket.negatives;
    buckets_[entry.number].positives += entry.bucket.positives;
  }
}

void Metrics::clear() { *this = Metrics(exact_rows_); }

}  // namespace hf
