// libsvm and libFM: `label id:value id:value …`, `#` starts a comment. Labels are 1 (+1) or 0 (-1). All pairs
// go to the one categorical feature of the config, value = weight; a row may have none.
// Threading: one parser per thread.
#pragma once

#include "io/row_reader.hpp"

namespace hf {

class LibsvmParser final : public LineParser {
 public:
  /// Throws: ConfigError unless the config has exactly one categorical and no numeric feature.
  LibsvmParser(const Config& config, bool require_labels);
  bool skip(std::string_view line) override;
  bool parse(std::string_view line, RawRow& row, std::string& reason) override;
  std::string_view split_text(std::string_view line) override;

 private:
  bool require_labels_;
};

}  // namespace hf
