#include "io/text_stream.hpp"

#include <utility>

#include "core/error.hpp"
#include "io/encoder.hpp"
#include "io/row_reader.hpp"
#include "io/split.hpp"

namespace hf {
namespace {

constexpr std::size_t kRememberedBadRows = 10;

class TextStream final : public BatchStream {
 public:
  TextStream(const Config& config, const Schema& schema, const Statistics& statistics,
             const StreamOptions& options, std::vector<std::string> files, bool filter)
      : split_(config.data.split),
        max_bad_rows_(config.data.max_bad_rows),
        options_(options),
        filter_(filter),
        rows_(open_rows(config, std::move(files), options.require_labels)),
        encoder_(config, schema, statistics) {
    HF_CHECK(options.batch_size > 0 && options.worker < options.num_workers,
             "a batch size and a worker of the job");
  }

  bool next(Batch& out) override {
    encoder_.prepare(out);
    if (at_end_) return false;
    bool any = false;
    while (advance()) {
      const std::uint64_t position = next_position_++;
      const std::uint64_t block = position / options_.batch_size;
      if (block % options_.num_workers != options_.worker) continue;
      if (!any) out.first_row = block * options_.batch_size;
      any = true;
      take_row(out);
      if (next_position_ % options_.batch_size == 0) {
        check_bad_rows(stats_, max_bad_rows_);
        return true;
      }
    }
    at_end_ = true;
    check_bad_rows(stats_, max_bad_rows_);
    return any;
  }

  StreamStats stats() const override { return stats_; }

 private:
  /// To the next row of the split.
  bool advance() {
    while (rows_->advance()) {
      const std::uint64_t row = next_row_++;
      if (!filter_) return true;
      const Split owner =
          split_.by == SplitBy::ratio ? ratio_split(split_, row) : column_split(split_, rows_->split_text());
      if (owner == options_.split) return true;
    }
    return false;
  }

  void take_row(Batch& out) {
    reason_.clear();
    if (rows_->parse(row_, reason_) && encoder_.encode(row_, out, reason_))
      ++stats_.rows;
    else
      note_bad_row(stats_, rows_->file(), rows_->line(), reason_);
  }

  SplitConfig split_;
  std::uint64_t max_bad_rows_;
  StreamOptions options_;
  bool filter_;
  std::unique_ptr<RowReader> rows_;
  RowEncoder encoder_;
  RawRow row_;
  std::string reason_;
  StreamStats stats_;
  std::uint64_t next_row_ = 0;       ///< of the files
  std::uint64_t next_position_ = 0;  ///< of the split
  bool at_end_ = false;
};

}  // namespace

std::unique_ptr<BatchStream> open_text_stream(const Config& config, const Schema& schema,
                                              const Statistics& statistics, const StreamOptions& options,
                                              std::vector<std::string> files, bool filter) {
  return std::make_unique<TextStream>(config, schema, statistics, options, std::move(files), filter);
}

void note_bad_row(StreamStats& stats, const std::string& file, std::uint64_t line,
                  const std::string& reason) {
  if (stats.bad_rows++ < kRememberedBadRows) stats.first_bad_rows.push_back({file, line, reason});
}

void check_bad_rows(const StreamStats& stats, std::uint64_t max_bad_rows) {
  if (stats.bad_rows <= max_bad_rows) return;
  std::string text = std::to_string(stats.bad_rows) + " malformed " + (stats.bad_rows == 1 ? "row" : "rows") +
                     ", data.max_bad_rows allows " + std::to_string(max_bad_rows);
  if (stats.bad_rows > stats.first_bad_rows.size())
    text += "; the first " + std::to_string(stats.first_bad_rows.size());
  text += ":";
  for (const BadRow& row : stats.first_bad_rows)
    text += "\n  " + row.file + ":" + std::to_string(row.line) + ": " + row.reason;
  throw DataError(text);
}

}  // namespace hf
