// Delimited text with named columns: CSV as in RFC 4180, TSV, and Adult's comma + space.
//
// A field may stand in double quotes; "" inside them is one quote. A row is one line: a quoted field that
// does not end on its line makes the row malformed. Any single character but a quote or a line end is a
// delimiter. With `trim` blanks around a field are dropped, but not those inside quotes. The names are those
// of the header line of each file (so files may differ in the order of their columns), or data.csv.columns
// where given. A field equal to one of data.csv.missing is missing, in quotes or not.
// Threading: one parser per thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/row_reader.hpp"

namespace hf {

class CsvParser final : public LineParser {
 public:
  /// Throws: ConfigError listing all problems: the delimiter, and where the names are in the config missing
  /// columns.
  CsvParser(const Config& config, bool require_labels);
  void start_file(const std::string& file) override;
  bool skip(std::string_view line) override;
  bool expects_header() const noexcept override { return header_pending_; }
  bool parse(std::string_view line, RawRow& row, std::string& reason) override;
  std::string_view split_text(std::string_view line) override;

 private:
  bool split_fields(std::string_view line, std::string& reason);
  bool quoted_field(std::string_view line, std::size_t& at, std::string& reason);
  std::string resolve(const std::vector<std::string>& names);
  std::string_view or_missing(std::string_view text) const;

  CsvConfig csv_;
  SplitConfig split_;
  std::vector<std::string> numeric_names_, categorical_names_;
  bool require_labels_;
  char delimiter_ = ',';

  std::string file_;
  bool header_pending_ = false;
  std::size_t num_columns_ = 0;
  std::optional<std::size_t> label_;
  std::size_t split_column_ = 0;
  std::vector<std::size_t> numeric_, categorical_;  ///< per feature: its column

  std::vector<std::string_view> fields_;
  std::string unquoted_;  ///< fields with doubled quotes, without them; never grows while a line is split
  std::string ignored_reason_;
};

}  // namespace hf
