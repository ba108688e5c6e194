#include "io/split.hpp"

#include <algorithm>

#include "core/random.hpp"
#include "io/encoder.hpp"

namespace hf {
namespace {

std::string_view strip_zeros(std::string_view text) {
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  return text;
}

bool listed(const std::vector<std::string>& values, const SplitConfig& split, std::string_view text,
            std::string_view derived) {
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    if (split.derive.empty()) return value == text;
    if (split.derive == "day" && value.size() == 6) return value == text.substr(0, 6);
    return strip_zeros(value) == derived;
  });
}

}  // namespace

SplitInputs split_inputs(const DataConfig& data, Split split) {
  const auto& named = split == Split::train        ? data.train
                      : split == Split::validation ? data.validation
                                                   : data.test;
  if (data.split.by == SplitBy::file) return {named, false};
  if (split == Split::train) return {data.train, true};
  if (!named.empty()) return {named, false};
  const bool validation = split == Split::validation;
  const bool fed = data.split.by == SplitBy::ratio
                       ? (validation ? data.split.validation_ratio : data.split.test_ratio) > 0.0
                       : !(validation ? data.split.validation_values : data.split.test_values).empty();
  if (!fed) return {};
  return {data.train, true};
}

Split ratio_split(const SplitConfig& split, std::uint64_t row) noexcept {
  const double u = uniform_double(mix64(split.seed, row));
  if (u < split.validation_ratio) return Split::validation;
  if (u < split.validation_ratio + split.test_ratio) return Split::test;
  return Split::train;
}

Split column_split(const SplitConfig& split, std::string_view text) {
  if (is_missing(text)) return Split::train;
  const auto derived = derive_text(split.derive, text);
  if (!derived) return Split::train;
  if (listed(split.validation_values, split, text, *derived)) return Split::validation;
  if (listed(split.test_values, split, text, *derived)) return Split::test;
  return Split::train;
}

}  // namespace hf
