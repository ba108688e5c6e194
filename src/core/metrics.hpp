// Quality of predictions: AUC, logloss, normalised entropy, calibration. No torch.
// Progressive validation adds the logits of a batch before the model learns from it; nothing else differs.
// Invariants: parts that were added on several workers and merged give the result of one (the sums up to
// rounding).
// Threading: an object belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hf {

/// What is not defined is NaN: everything without rows, auc and normalized_entropy with one class only,
/// calibration without positives, all of them when a logit was NaN.
struct MetricsResult {
  std::uint64_t rows = 0;
  std::uint64_t positives = 0;
  double auc = 0.0;                 ///< area under the ROC curve, a tie counts one half
  double auc_error = 0.0;           ///< |auc - exact auc| is at most this; 0 where auc is exact
  double logloss = 0.0;             ///< mean binary cross-entropy, natural logarithm
  double normalized_entropy = 0.0;  ///< logloss / entropy of the base rate. Source: He et al. 2014, eq. 3
  double calibration = 0.0;         ///< sum of predicted probabilities / number of positives
};

class Metrics {
 public:
  static constexpr std::uint64_t kExactRows = 10'000'000;

  /// Up to exact_rows rows the logits are kept (4 bytes a row) and the AUC is exact. With more, also after a
  /// merge, they go into 2^20 buckets of equal width over logits -32 … 32, and auc_error says what that may
  /// cost: half of the share of (positive, negative) pairs that fell into one bucket. 0: buckets from the
  /// start, for a running display (a result costs some 2 ms then, whatever the number of rows).
  explicit Metrics(std::uint64_t exact_rows = kExactRows) : exact_rows_(exact_rows) {}

  /// labels[i] > 0.5 is a positive.
  void add(std::span<const float> logits, std::span<const float> labels);

  /// Cost: sorts the logits while the AUC is exact (about 0.1 s a million).
  MetricsResult result() const;

  /// Everything added so far, for merge() on another rank. Cost: 4 bytes a row while exact, at most 20 MiB
  /// after.
  std::vector<std::byte> serialize() const;
  /// Adds the serialised part of another object. Throws: FormatError, and then nothing was added.
  void merge(std::span<const std::byte> part);

  void clear();
  std::uint64_t rows() const noexcept { return rows_; }
  bool exact() const noexcept { return buckets_.empty(); }

 private:
  struct Bucket {
    std::uint64_t negatives = 0;
    std::uint64_t positives = 0;
  };

  static std::size_t bucket_of(float logit) noexcept;
  void use_buckets();
  void place(float logit, bool positive);
  void exact_auc(MetricsResult& result) const;
  void bucket_auc(MetricsResult& result) const;

  std::uint64_t exact_rows_;
  std::uint64_t rows_ = 0;
  std::uint64_t positive_rows_ = 0;
  std::uint64_t nan_rows_ = 0;
  double loss_sum_ = 0.0;
  double probability_sum_ = 0.0;
  std::vector<float> negative_logits_, positive_logits_;  ///< while exact
  std::vector<Bucket> buckets_;                           ///< empty while exact
};

}  // namespace hf
