#include "io/csv_reader.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"

namespace hf {
namespace {

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& n : names) text += (text.empty() ? "" : ", ") + n;
  return text;
}

}  // namespace

CsvParser::CsvParser(const Config& config, bool require_labels)
    : csv_(config.data.csv), split_(config.data.split), require_labels_(require_labels) {
  const auto column = [](const auto& f) { return f.column.empty() ? f.name : f.column; };
  for (const auto& f : config.features.numeric) numeric_names_.push_back(column(f));
  for (const auto& f : config.features.categorical) categorical_names_.push_back(column(f));

  std::string problems;
  if (csv_.delimiter == "tab" || csv_.delimiter == "\\t")
    delimiter_ = '\t';
  else if (csv_.delimiter.size() == 1 &&
           csv_.delimiter.find_first_of(std::string_view("\"\r\n\0", 4)) == std::string::npos)
    delimiter_ = csv_.delimiter[0];
  else
    problems += "\n  data.csv.delimiter: expected one character other than a quote or a line end, found '" +
                csv_.delimiter + "'";
  if (!csv_.header && csv_.columns.empty())
    problems += "\n  data.csv.columns: needed where the files have no header";
  if (!csv_.columns.empty()) problems += resolve(csv_.columns);
  if (!problems.empty()) throw ConfigError("csv data:" + problems);
}

/// Finds the columns by their names; returns the problems, one line each.
std::string CsvParser::resolve(const std::vector<std::string>& names) {
  std::string problems;
  const auto find = [&](const std::string& name, bool number_allowed) -> std::optional<std::size_t> {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) {
      if (std::find(at + 1, names.end(), name) != names.end())
        problems += "\n  column '" + name + "' stands there twice";
      return static_cast<std::size_t>(at - names.begin());
    }
    if (!number_allowed) return std::nullopt;
    std::size_t n = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
    const bool good = error == std::errc() && end == name.data() + name.size() && n >= 1 && n <= names.size();
    return good ? std::optional(n - 1) : std::nullopt;
  };
  const auto need = [&](const std::string& name, bool number_allowed = false) {
    const auto at = find(name, number_allowed);
    if (!at) problems += "\n  there is no column '" + name + "', only: " + joined(names);
    return at.value_or(0);
  };
  num_columns_ = names.size();
  numeric_.clear();
  categorical_.clear();
  for (const auto& n : numeric_names_) numeric_.push_back(need(n));
  for (const auto& n : categorical_names_) categorical_.push_back(need(n));
  if (split_.by == SplitBy::column) split_column_ = need(split_.column, true);
  label_ = csv_.label.empty() ? std::nullopt : find(csv_.label, false);
  if (!label_ && require_labels_)
    problems += csv_.label.empty()
                    ? "\n  data.csv.label: needed for labelled rows"
                    : "\n  there is no column '" + csv_.label + "' (the label), only: " + joined(names);
  return problems;
}

void CsvParser::start_file(const std::string& file) {
  file_ = file;
  header_pending_ = csv_.header;
}

bool CsvParser::skip(std::string_view line) {
  if (!header_pending_) return false;
  header_pending_ = false;
  std::string reason;
  if (!split_fields(line, reason)) throw DataError(file_ + ": bad header: " + reason);
  if (!csv_.columns.empty()) {
    if (fields_.size() != csv_.columns.size())
      throw DataError(file_ + ": the header has " + std::to_string(fields_.size()) +
                      " columns, data.csv.columns " + std::to_string(csv_.columns.size()));
    return true;
  }
  const std::string problems = resolve({fields_.begin(), fields_.end()});
  if (!problems.empty()) throw DataError(file_ + ": header:" + problems);
  return true;
}

bool CsvParser::quoted_field(std::string_view line, std::size_t& at, std::string& reason) {
  const std::size_t begin = ++at;
  const std::size_t stored = unquoted_.size();
  bool doubled = false;
  std::string_view field;
  for (;;) {
    const auto quote = line.find('"', at);
    if (quote == std::string_view::npos) {
      reason = "a quoted field does not end on this line (field " + std::to_string(fields_.size() + 1) + ")";
      return false;
    }
    const bool escaped = quote + 1 < line.size() && line[quote + 1] == '"';
    if (doubled || escaped) {
      if (!doubled)
        unquoted_.append(line.substr(begin, quote - begin));
      else
        unquoted_.append(line.substr(at, quote - at));
      doubled = true;
      if (escaped) unquoted_.push_back('"');
    }
    at = quote + (escaped ? 2 : 1);
    if (escaped) continue;
    field = doubled ? std::string_view(unquoted_).substr(stored) : line.substr(begin, quote - begin);
    break;
  }
  if (csv_.trim)
    while (at < line.size() && (line[at] == ' ' || line[at] == '\t') && line[at] != delimiter_) ++at;
  if (at < line.size() && line[at] != delimiter_) {
    reason = "text follows the closing quote of field " + std::to_string(fields_.size() + 1);
    return false;
  }
  fields_.push_back(field);
  return true;
}

bool CsvParser::split_fields(std::string_view line, std::string& reason) {
  fields_.clear();
  unquoted_.clear();
  unquoted_.reserve(line.size());  // views into it must stay valid
  const auto blank = [&](char c) { return (c == ' ' || c == '\t') && c != delimiter_; };
  const bool quotes = line.find('"') != std::string_view::npos;
  for (std::size_t at = 0;;) {
    if (csv_.trim)
      while (at < line.size() && blank(line[at])) ++at;
    if (quotes && at < line.size() && line[at] == '"') {
      if (!quoted_field(line, at, reason)) return false;
    } else {
      const std::size_t stop = std::min(line.find(delimiter_, at), line.size());
      std::string_view field = line.substr(at, stop - at);
      if (csv_.trim)
        while (!field.empty() && blank(field.back())) field.remove_suffix(1);
      fields_.push_back(field);
      at = stop;
    }
    if (at >= line.size()) return true;
    ++at;  // the delimiter
  }
}

std::string_view CsvParser::or_missing(std::string_view text) const {
  return contains(csv_.missing, text) ? kMissing : text;
}

bool CsvParser::parse(std::string_view line, RawRow& row, std::string& reason) {
  if (!split_fields(line, reason)) return false;
  if (fields_.size() != num_columns_) {
    reason = "expected " + std::to_string(num_columns_) + " fields, found " + std::to_string(fields_.size());
    return false;
  }
  row.label.reset();
  if (label_) {
    const std::string_view text = fields_[*label_];
    if (contains(csv_.positive, text)) {
      row.label = 1.0F;
    } else if (contains(csv_.negative, text)) {
      row.label = 0.0F;
    } else if (is_missing(or_missing(text))) {
      if (require_labels_) {
        reason = "the label is missing";
        return false;
      }
    } else if (csv_.negative.empty()) {
      row.label = 0.0F;
    } else {
      reason = "label '" + std::string(text.substr(0, 40)) +
               "' is in neither data.csv.positive nor data.csv.negative";
      return false;
    }
  }
  row.numeric.resize(numeric_.size());
  for (std::size_t i = 0; i < numeric_.size(); ++i) row.numeric[i] = or_missing(fields_[numeric_[i]]);
  row.categorical.resize(categorical_.size());
  for (std::size_t i = 0; i < categorical_.size(); ++i)
    row.categorical[i].text = or_missing(fields_[categorical_[i]]);
  return true;
}

std::string_view CsvParser::split_text(std::string_view line) {
  if (!split_fields(line, ignored_reason_) || split_column_ >= fields_.size()) return kMissing;
  return or_missing(fields_[split_column_]);
}

}  // namespace hf
