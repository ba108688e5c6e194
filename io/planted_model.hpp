// The planted model behind synthetic click logs (see synth.hpp): draws rows and knows their true logits.
// Threading: immutable after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/synth.hpp"

namespace hf {

/// 1 / (1 + e^-z) without overflow.
double sigmoid(double z) noexcept;

class PlantedModel {
 public:
  static constexpr std::size_t kNumeric = 13, kCategorical = 26, kFields = kNumeric + kCategorical;

  /// Entry numbers of one row, by field; 0 = missing.
  using Row = std::array<std::uint32_t, kFields>;

  struct Pair {
    std::size_t first = 0, second = 0;  ///< categorical fields, from 0
    std::vector<float> u, v;  ///< Shape: [1 + categories, interaction_rank]; the first row (missing) is zero
  };

  /// Independent sequences of rows.
  enum class Set : std::uint64_t { train = 1, validation, calibration };

  /// Requires: options checked, one vocabulary size per categorical field.
  PlantedModel(const SynthOptions& options, std::vector<std::uint64_t> vocabulary);

  double bias() const noexcept { return bias_; }
  const std::vector<Pair>& pairs() const noexcept { return pairs_; }

  struct Drawn {
    double logit = 0;
    bool label = false;
  };
  /// Row i of a set.
  Drawn draw(Set set, std::uint64_t i, Row& row) const noexcept;

  /// Appends the row as one line.
  void print(const Row& row, bool label, std::string& out) const;

 private:
  /// Draws 0 … n-1 with given weights in O(1) from one 64-bit word.
  /// Source: Vose, A linear algorithm for generating random numbers with a given distribution, 1991.
  class AliasTable {
   public:
    AliasTable() = default;
    explicit AliasTable(const std::vector<double>& weights);
    std::uint32_t draw(std::uint64_t word) const noexcept {
      const auto i = static_cast<std::uint32_t>(((word >> 32) * cells_.size()) >> 32);
      const Cell& cell = cells_[i];
      return static_cast<std::uint32_t>(word) < cell.threshold ? i : cell.alias;
    }

   private:
    struct Cell {
      std::uint32_t threshold = ~0U, alias = 0;
    };
    std::vector<Cell> cells_;
  };

  /// A column of the log: entry 0 is the missing value, the others have a text and a contribution to the
  /// logit.
  struct Field {
    struct Entry {
      std::array<char, 11> text{};
      std::uint8_t length = 0;
      float contribution = 0;
    };
    std::vector<Entry> entries{1};
    AliasTable sampler;

    void add(const std::string& text, double contribution);
  };

  AliasTable sampler_of(std::vector<double> weights) const;
  void build_numeric(std::size_t j);
  void build_categorical(std::size_t f);
  void build_pairs();
  std::vector<float> interaction_vectors(std::size_t f) const;
  std::vector<double> zipf_weights(std::size_t f) const;
  void calibrate();

  SynthOptions options_;
  std::vector<std::uint64_t> vocabulary_;
  std::vector<Field> fields_;
  std::vector<Pair> pairs_;
  double bias_ = 0;
};

}  // namespace hf
