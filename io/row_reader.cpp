#include "io/row_reader.hpp"

#include <optional>

#include "core/error.hpp"
#include "io/criteo_reader.hpp"
#include "io/csv_reader.hpp"
#include "io/libffm_reader.hpp"
#include "io/libsvm_reader.hpp"

namespace hf {
namespace {

using OpenBytes = std::function<std::unique_ptr<ByteSource>(const std::string&)>;

bool is_blank(std::string_view line) noexcept {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

class TextRowReader final : public RowReader {
 public:
  TextRowReader(std::unique_ptr<LineParser> parser, std::vector<std::string> files,
                std::uint64_t max_line_bytes, bool blanks_can_be_rows, OpenBytes open)
      : open_(std::move(open)),
        parser_(std::move(parser)),
        files_(std::move(files)),
        max_line_bytes_(max_line_bytes),
        blanks_can_be_rows_(blanks_can_be_rows) {}

  bool advance() override {
    for (;;) {
      if (!lines_) {
        if (next_file_ == files_.size()) return false;
        current_file_ = next_file_++;
        lines_.emplace(open_(files_[current_file_]), max_line_bytes_);
        parser_->start_file(files_[current_file_]);
      }
      if (!lines_->next(line_)) {
        lines_.reset();
        continue;
      }
      if (line_.too_long) {
        if (parser_->expects_header()) throw DataError(file() + ": header: " + too_long());
        return true;
      }
      // With TABs as delimiter a line of nothing but TABs is a row of missing values.
      if (line_.text.empty() || (!blanks_can_be_rows_ && is_blank(line_.text))) continue;
      if (!parser_->skip(line_.text)) return true;
    }
  }

  bool parse(RawRow& row, std::string& reason) override {
    if (line_.too_long) {
      reason = too_long();
      return false;
    }
    if (const auto at = line_.text.find('\0'); at != std::string_view::npos) {
      reason = "the line has a NUL byte at column " + std::to_string(at + 1);
      return false;
    }
    return parser_->parse(line_.text, row, reason);
  }

  std::string_view split_text() override {
    return line_.too_long ? kMissing : parser_->split_text(line_.text);
  }
  const std::string& file() const noexcept override {
    return files_.empty() ? no_file_ : files_[current_file_];
  }
  std::uint64_t line() const noexcept override { return line_.number; }

 private:
  std::string too_long() const {
    return "the line has more than data.max_line_bytes = " + std::to_string(max_line_bytes_) + " bytes";
  }

  OpenBytes open_;
  std::unique_ptr<LineParser> parser_;
  std::vector<std::string> files_;
  std::string no_file_;
  std::uint64_t max_line_bytes_;
  bool blanks_can_be_rows_;
  std::optional<LineReader> lines_;
  Line line_;
  std::size_t next_file_ = 0, current_file_ = 0;
};

}  // namespace

bool RowReader::next(RawRow& row, RowStatus& status) {
  if (!advance()) return false;
  status.file = &file();
  status.line = line();
  status.reason.clear();
  status.good = parse(row, status.reason);
  return true;
}

std::unique_ptr<LineParser> make_line_parser(const Config& config, bool require_labels) {
  switch (config.data.format) {
    case DataFormat::criteo:
      return std::make_unique<CriteoParser>(config, require_labels);
    case DataFormat::csv:
      return std::make_unique<CsvParser>(config, require_labels);
    case DataFormat::libsvm:
    case DataFormat::libfm:
      return std::make_unique<LibsvmParser>(config, require_labels);
    case DataFormat::libffm:
      return std::make_unique<LibffmParser>(config, require_labels);
    case DataFormat::packed:
      break;
  }
  HF_CHECK(false, "a text format");
}

std::unique_ptr<RowReader> open_rows(const Config& config, std::vector<std::string> files,
                                     bool require_labels) {
  return open_rows(config, std::move(files), require_labels, open_bytes);
}

std::unique_ptr<RowReader> open_rows(const Config& config, std::vector<std::string> names,
                                     bool require_labels, OpenBytes open) {
  const auto& delimiter = config.data.csv.delimiter;
  const bool tabs = config.data.format == DataFormat::criteo ||
                    (config.data.format == DataFormat::csv &&
                     (delimiter == "tab" || delimiter == "\\t" || delimiter == "\t" || delimiter == " "));
  return std::make_unique<TextRowReader>(make_line_parser(config, require_labels), std::move(names),
                                         config.data.max_line_bytes, tabs, std::move(open));
}

}  // namespace hf
