// Rows of text files, one after the other: lines from the files, fields from the lines.
//
// advance() finds the next row without looking into it, parse() takes the current one apart; a caller that
// needs only some of the rows pays the parsing for those only. Blank lines, comments (libsvm) and headers
// (csv) are no rows. A line above max_line_bytes and a line with a NUL byte are rows whose parse() fails.
// Threading: a reader is used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.hpp"
#include "io/row.hpp"
#include "io/text_file.hpp"

namespace hf {

/// The grammar of one text format: takes lines apart. What the readers for criteo, csv, libsvm and libffm
/// implement.
class LineParser {
 public:
  LineParser() = default;
  LineParser(const LineParser&) = delete;
  LineParser& operator=(const LineParser&) = delete;
  virtual ~LineParser() = default;

  /// A new file begins; `file` is for messages only.
  virtual void start_file(const std::string& file) { (void)file; }
  /// True when the (not blank) line is no row: a header, which is taken in, or a comment.
  /// Throws: DataError for a header that lacks a column of the config.
  virtual bool skip(std::string_view line) {
    (void)line;
    return false;
  }
  /// True before the header of a file that has one.
  virtual bool expects_header() const noexcept { return false; }
  /// False: the row is malformed, `reason` says why, `row` is unspecified.
  virtual bool parse(std::string_view line, RawRow& row, std::string& reason) = 0;
  /// The text of config.data.split.column, found as cheaply as the format allows; kMissing where it is
  /// missing or the row has no such field. The view lives until the next call.
  virtual std::string_view split_text(std::string_view line) = 0;
};

/// Throws: ConfigError when a feature or the split names a column that the format does not have.
std::unique_ptr<LineParser> make_line_parser(const Config& config, bool require_labels = true);

/// Where a row stands and whether it was well formed.
struct RowStatus {
  const std::string* file = nullptr;  ///< lives as long as the reader
  std::uint64_t line = 0;             ///< 1-based
  bool good = false;
  std::string reason;  ///< why not good
};

class RowReader {
 public:
  RowReader() = default;
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;
  virtual ~RowReader() = default;

  /// To the next row; false after the last row of the last file.
  /// Throws: IoError, FormatError, DataError (csv header).
  virtual bool advance() = 0;
  /// Takes the current row apart; false: malformed, `reason` says why.
  virtual bool parse(RawRow& row, std::string& reason) = 0;
  /// The text of the split column in the current row, see LineParser; kMissing on a malformed line.
  virtual std::string_view split_text() = 0;
  virtual const std::string& file() const noexcept = 0;
  virtual std::uint64_t line() const noexcept = 0;

  /// advance() and parse() in one: false at the end; status.good tells whether `row` is usable.
  virtual bool next(RawRow& row, RowStatus& status);
};

/// The rows of `files` in order. `files` are names of plain or gzip files (see inputs.hpp for directories and
/// globs).
/// Requires: config.data.format is a text format. Throws: ConfigError.
std::unique_ptr<RowReader> open_rows(const Config& config, std::vector<std::string> files,
                                     bool require_labels = true);

/// The same with bytes from elsewhere: `open` is called with each name when its turn comes.
std::unique_ptr<RowReader> open_rows(const Config& config, std::vector<std::string> names,
                                     bool require_labels,
                                     std::function<std::unique_ptr<ByteSource>(const std::string&)> open);

}  // namespace hf
