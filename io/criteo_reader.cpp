#include "io/criteo_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/error.hpp"

namespace hf {
namespace {

std::optional<std::size_t> number_in(std::string_view text, std::size_t last) {
  std::size_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n < 1 || n > last) return std::nullopt;
  return n;
}

/// "I1" → 1, "C26" → 39: position of the field in a labelled row.
std::optional<std::size_t> field_of(std::string_view column, std::size_t integers, std::size_t categories) {
  if (column.size() < 2) return std::nullopt;
  if (column[0] == 'I') return number_in(column.substr(1), integers);
  if (column[0] != 'C') return std::nullopt;
  const auto n = number_in(column.substr(1), categories);
  return n ? std::optional(integers + *n) : std::nullopt;
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string quoted(std::string_view text) { return "'" + std::string(text.substr(0, 40)) + "'"; }

}  // namespace

CriteoParser::CriteoParser(const Config& config, bool require_labels) : require_labels_(require_labels) {
  std::string problems;
  const auto resolve = [&](const std::string& feature, const std::string& column, std::size_t categories) {
    const std::string& name = column.empty() ? feature : column;
    const auto field = field_of(name, kIntegers, categories);
    if (!field)
      problems += "\n  feature " + feature + ": column '" + name + "' is none of I1 … I13" +
                  (categories > 0 ? " or C1 … C26" : "");
    return field.value_or(0);
  };
  for (const auto& f : config.features.numeric) numeric_.push_back(resolve(f.name, f.column, 0));
  for (const auto& f : config.features.categorical)
    categorical_.push_back(resolve(f.name, f.column, kCategories));
  const SplitConfig& split = config.data.split;
  if (split.by == SplitBy::column) {
    const auto named = field_of(split.column, kIntegers, kCategories);
    const auto numbered = number_in(split.column, kFields);
    if (!named && !numbered)
      problems += "\n  data.split.column: '" + split.column + "' is none of I1 … I13, C1 … C26 or 1 … 40";
    split_field_ = named ? *named : numbered.value_or(1) - 1;
  }
  if (!problems.empty()) throw ConfigError("columns of criteo data:" + problems);
}

bool CriteoParser::parse(std::string_view line, RawRow& row, std::string& reason) {
  std::size_t count = 0;
  const char* at = line.data();
  const char* const end = at + line.size();
  for (;;) {
    const auto* tab = static_cast<const char*>(std::memchr(at, '\t', static_cast<std::size_t>(end - at)));
    const char* const stop = tab != nullptr ? tab : end;
    if (count < kFields) fields_[count] = std::string_view(at, static_cast<std::size_t>(stop - at));
    ++count;
    if (tab == nullptr) break;
    at = tab + 1;
  }
  const bool unlabelled = count == kFields - 1 && !require_labels_;
  if (count != kFields && !unlabelled) {
    reason =
        "expected " + std::to_string(kFields) + " fields separated by TABs, found " + std::to_string(count);
    return false;
  }
  if (unlabelled) {
    std::move_backward(fields_.begin(), fields_.end() - 1, fields_.end());
    fields_[0] = {};
  }

  const std::string_view label = fields_[0];
  if (label == "0" || label == "1") {
    row.label = label == "1" ? 1.0F : 0.0F;
  } else if (label.empty() && !require_labels_) {
    row.label.reset();
  } else {
    reason = "label " + quoted(label) + " is neither 0 nor 1";
    return false;
  }
  for (std::size_t i = 1; i <= kIntegers; ++i)
    if (!fields_[i].empty() && !is_integer(fields_[i])) {
      reason = "I" + std::to_string(i) + " is " + quoted(fields_[i]) + ", expected an integer or nothing";
      return false;
    }

  const auto text_of = [&](std::size_t field) { return fields_[field].empty() ? kMissing : fields_[field]; };
  row.numeric.resize(numeric_.size());
  for (std::size_t i = 0; i < numeric_.size(); ++i) row.numeric[i] = text_of(numeric_[i]);
  row.categorical.resize(categorical_.size());
  for (std::size_t i = 0; i < categorical_.size(); ++i) row.categorical[i].text = text_of(categorical_[i]);
  return true;
}

std::string_view CriteoParser::split_text(std::string_view line) {
  for (std::size_t i = 0;; ++i) {
    const auto tab = line.find('\t');
    if (i == split_field_) {
      const auto text = line.substr(0, tab);
      return text.empty() ? kMissing : text;
    }
    if (tab == std::string_view::npos) return kMissing;
    line.remove_prefix(tab + 1);
  }
}

}  // namespace hf
