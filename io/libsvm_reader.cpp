#include "io/libsvm_reader.hpp"

#include "core/error.hpp"
#include "io/sparse_tokens.hpp"

namespace hf {

using namespace sparse_text;

LibsvmParser::LibsvmParser(const Config& config, bool require_labels) : require_labels_(require_labels) {
  if (config.features.categorical.size() != 1 || !config.features.numeric.empty())
    throw ConfigError(
        "features: libsvm and libfm data need exactly one categorical feature and no numeric ones, found " +
        std::to_string(config.features.categorical.size()) + " and " +
        std::to_string(config.features.numeric.size()));
  if (config.data.split.by == SplitBy::column)
    throw ConfigError("data.split.by: libsvm and libfm data have no columns to split by");
}

bool LibsvmParser::skip(std::string_view line) {
  line = without_comment(line);
  return take_token(line).empty();
}

bool LibsvmParser::parse(std::string_view line, RawRow& row, std::string& reason) {
  line = without_comment(line);
  if (!take_label(line, require_labels_, row.label, reason)) return false;
  row.numeric.clear();
  row.categorical.resize(1);
  row.categorical[0].text = kMissing;
  auto& values = row.categorical[0].values;
  values.clear();
  for (;;) {
    const std::string_view token = take_token(line);
    if (token.empty()) return true;
    const auto colon = token.find(':');
    const auto weight =
        colon == std::string_view::npos ? std::nullopt : parse_weight(token.substr(colon + 1));
    if (!weight || !is_id(token.substr(0, colon))) {
      reason = "expected id:value, found '" + std::string(token.substr(0, 40)) + "'";
      return false;
    }
    values.push_back({token.substr(0, colon), *weight});
  }
}

std::string_view LibsvmParser::split_text(std::string_view) { return kMissing; }

}  // namespace hf
