// The Criteo display-advertising logs: label, 13 integers I1 … I13, 26 categories C1 … C26, separated by
// TABs, no header, empty = missing. Labels are 0 or 1, integers may be negative; a category is any text.
// Unlabelled rows lack the label and its TAB.
// Threading: one parser per thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "io/row_reader.hpp"

namespace hf {

class CriteoParser final : public LineParser {
 public:
  /// Throws: ConfigError listing the features with a column other than I1 … I13, C1 … C26.
  CriteoParser(const Config& config, bool require_labels);
  bool parse(std::string_view line, RawRow& row, std::string& reason) override;
  std::string_view split_text(std::string_view line) override;

 private:
  static constexpr std::size_t kIntegers = 13, kCategories = 26, kFields = 1 + kIntegers + kCategories;

  bool require_labels_;
  std::vector<std::size_t> numeric_, categorical_;  ///< per feature: position in fields_
  std::size_t split_field_ = 0;
  std::array<std::string_view, kFields> fields_;
};

}  // namespace hf
