// Synthetic click logs in the Criteo format (label, I1…I13, C1…C26, TAB, empty = missing) from a planted
// model whose best possible AUC and logloss on exactly the written rows are known.
//
// Planted model: label ~ Bernoulli(sigmoid(z)),
//   z = bias + Σ_j a_j·log1p(I_j) + Σ_f w_f[C_f] + Σ_(f,g) <u_f[C_f], v_g[C_g]>.
//   The pairs (f, g) join fields of small vocabulary; u and v have `interaction_rank` coordinates of mean 0
//   over the rows, so that a linear model can learn nothing of them. A missing value contributes nothing.
//   Categories of a field follow Zipf's law. With the defaults 400,000 rows are enough for a linear model to
//   come within about 0.01 of the best AUC, and for one with interactions to come nearer.
// Invariants: row i of a set is a pure function of (options but rows and files, set, i), so the bytes of the
//   concatenated files do not depend on the number of files, and a longer set begins with the shorter one. A
//   category's weight is a pure function of (seed, field, category); its interaction vector is one of (seed,
//   field, category, the field's vocabulary, zipf).
// Threading: pure but for the files it writes; single-threaded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace hf {

struct SynthOptions {
  std::string output_dir;
  std::uint64_t rows = 400000;
  std::uint64_t validation_rows = 50000;
  std::uint64_t seed = 42;
  std::uint32_t files = 1;  ///< 1: train.tsv; more: train_000.tsv, train_001.tsv, …
  bool gzip = false;        ///< adds .gz to the names
  double base_rate = 0.25;  ///< mean click probability
  double missing_rate = 0.05;
  double zipf = 1.1;                ///< exponent of every categorical field
  double numeric_scale = 0.25;      ///< standard deviation of one numeric field's contribution to the logit
  double category_scale = 0.2;      ///< of one categorical field's
  double interaction_scale = 0.15;  ///< of one pair's
  std::uint32_t interaction_rank = 1;
  std::uint32_t interactions = 2;  ///< pairs
  /// Categories of C1 … C26; a single value means all of them. Empty: 10 … 500, mixed.
  std::vector<std::uint64_t> vocabulary;
  /// Called about every 65,536 rows with (rows written, rows in all); may be empty.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// What is true of the rows of one set.
struct SynthTruth {
  std::vector<std::string> files;  ///< paths
  std::uint64_t rows = 0;
  std::uint64_t clicks = 0;
  double auc = 0;  ///< of the true probabilities against the drawn labels; 0.5 when there is only one class
  double auc_error = 0;  ///< bound of auc's error: 0 up to 16 M rows (exact), above that a histogram is used
  double logloss = 0;
};

struct SynthResult {
  SynthTruth train, validation;
  std::string truth_file;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Writes train and validation files and truth.json (layout: io/README.md) into output_dir. Files of an
/// earlier run that its truth.json names are replaced. Throws: ConfigError listing impossible options;
/// FormatError for a truth.json of somebody else; IoError.
SynthResult synthesize(const SynthOptions& options);

}  // namespace hf
