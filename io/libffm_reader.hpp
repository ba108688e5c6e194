// libffm: `label field:id:value field:id:value …`, `#` starts a comment. Labels are 1 (+1) or 0 (-1). Field f
// goes to the f-th categorical feature of the config, counted from 0, value = weight; a field may have none
// or several.
// Threading: one parser per thread.
#pragma once

#include "io/row_reader.hpp"

namespace hf {

class LibffmParser final : public LineParser {
 public:
  /// Throws: ConfigError where the config has no categorical or any numeric feature.
  LibffmParser(const Config& config, bool require_labels);
  bool skip(std::string_view line) override;
  bool parse(std::string_view line, RawRow& row, std::string& reason) override;
  std::string_view split_text(std::string_view line) override;

 private:
  bool require_labels_;
  std::size_t num_fields_;
};

}  // namespace hf
