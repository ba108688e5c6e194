// From texts to numbers and ids: applies the transforms, encodings and tables of a config to raw rows.
//
// Dense column = transform(x), or missing_value; its indicator = 1 where missing. Ids:
//   hash, static table    1 + xxh64(text, salt) mod (rows - 1), salt = xxh64(table name): features that
//                         share a table give equal texts equal ids; 0 = missing
//   hash, dynamic table   xxh64(text, salt), where 0 becomes 1; 0 = missing
//   vocabulary            2 + index in Statistics::vocabularies[feature]; 1 = not in it; 0 = missing
//   identity              the text as an unsigned decimal number, modulo rows where the table wraps;
//                         0 = missing
//   bucketize             1 + number of boundaries <= x; 0 = missing
// A multi-value feature gives a bag: its text split by the separator, empty parts dropped; missing = empty
// bag.
// Threading: one encoder per thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/batch.hpp"
#include "core/config.hpp"
#include "core/schema.hpp"
#include "io/row.hpp"
#include "io/statistics.hpp"

namespace hf {

class RowEncoder {
 public:
  /// Throws: ConfigError listing every feature whose statistics are missing or whose table is too small.
  RowEncoder(const Config& config, const Schema& schema, const Statistics& statistics);
  ~RowEncoder();
  RowEncoder(RowEncoder&&) noexcept;
  RowEncoder& operator=(RowEncoder&&) noexcept;

  /// Empties `batch` and gives it the columns of the schema; keeps its memory.
  void prepare(Batch& batch) const;
  /// Appends the row. False: a bad row, `reason` says why, `out` is unchanged.
  /// A row without label makes the whole batch one without labels.
  /// Requires: `out` was prepared.
  bool encode(const RawRow& row, Batch& out, std::string& reason);

 private:
  struct Plan;
  std::unique_ptr<Plan> plan_;
};

/// A finite number, the whole text; nothing otherwise ("", "nan", "1e999", "3 ").
std::optional<double> parse_number(std::string_view text) noexcept;

/// The derived text of a timestamp YYMMDDHH: hour_of_day 0 … 23, day_of_week 0 (Monday) … 6, day (of the
/// month) 1 … 31, without leading zeros; `derive` "" = the text itself. Nothing for a text that is no such
/// timestamp.
/// The view lives as long as `text` or the program.
std::optional<std::string_view> derive_text(std::string_view derive, std::string_view text) noexcept;

/// Calls f(text, weight) for each value of a category in one row, derived and split as the encoder does it;
/// not at all where it is missing. False (and `reason`) for a timestamp that is none.
/// For statistics over raw rows.
template <class F>
bool for_each_value(const CategoricalFeature& feature, const RawCategory& raw, std::string& reason, F&& f) {
  const auto one = [&](std::string_view text, float weight) {
    const auto derived = derive_text(feature.derive, text);
    if (!derived) {
      reason = feature.name + ": '" + std::string(text.substr(0, 40)) + "' is no timestamp YYMMDDHH";
      return false;
    }
    return f(*derived, weight), true;
  };
  for (const RawValue& v : raw.values)
    if (!one(v.id, v.weight)) return false;
  if (is_missing(raw.text)) return true;
  if (feature.separator.empty()) return one(raw.text, 1.0F);
  for (std::string_view rest = raw.text;;) {
    const auto at = rest.find(feature.separator);
    if (const auto part = rest.substr(0, at); !part.empty() && !one(part, 1.0F)) return false;
    if (at == std::string_view::npos) return true;
    rest.remove_prefix(at + feature.separator.size());
  }
}

}  // namespace hf
