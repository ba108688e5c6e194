#include "io/libffm_reader.hpp"

#include <charconv>

#include "core/error.hpp"
#include "io/sparse_tokens.hpp"

namespace hf {

using namespace sparse_text;

LibffmParser::LibffmParser(const Config& config, bool require_labels)
    : require_labels_(require_labels), num_fields_(config.features.categorical.size()) {
  if (num_fields_ == 0 || !config.features.numeric.empty())
    throw ConfigError(
        "features: libffm data need one categorical feature per field and no numeric ones, found " +
        std::to_string(num_fields_) + " and " + std::to_string(config.features.numeric.size()));
  if (config.data.split.by == SplitBy::column)
    throw ConfigError("data.split.by: libffm data have no columns to split by");
}

bool LibffmParser::skip(std::string_view line) {
  line = without_comment(line);
  return take_token(line).empty();
}

bool LibffmParser::parse(std::string_view line, RawRow& row, std::string& reason) {
  line = without_comment(line);
  if (!take_label(line, require_labels_, row.label, reason)) return false;
  row.numeric.clear();
  row.categorical.resize(num_fields_);
  for (auto& c : row.categorical) {
    c.text = kMissing;
    c.values.clear();
  }
  for (;;) {
    const std::string_view token = take_token(line);
    if (token.empty()) return true;
    const auto first = token.find(':');
    const auto second = first == std::string_view::npos ? first : token.find(':', first + 1);
    if (second == std::string_view::npos || !is_id(token.substr(0, first)) ||
        !is_id(token.substr(first + 1, second - first - 1))) {
      reason = "expected field:id:value, found '" + std::string(token.substr(0, 40)) + "'";
      return false;
    }
    const auto weight = parse_weight(token.substr(second + 1));
    if (!weight) {
      reason = "'" + std::string(token.substr(second + 1, 40)) + "' is no finite number, in '" +
               std::string(token.substr(0, 40)) + "'";
      return false;
    }
    std::uint64_t field = 0;
    std::from_chars(token.data(), token.data() + first, field);
    if (field >= num_fields_) {
      reason = "field " + std::to_string(field) + " is beyond the config's " + std::to_string(num_fields_) +
               " categorical features (fields count from 0)";
      return false;
    }
    row.categorical[field].values.push_back({token.substr(first + 1, second - first - 1), *weight});
  }
}

std::string_view LibffmParser::split_text(std::string_view) { return kMissing; }

}  // namespace hf
