// One row of a text file as the readers hand it on: texts by feature, not yet numbers and ids.
// Invariants: numeric[i] belongs to config.features.numeric[i] and categorical[i] to features.categorical[i].
//   A text whose data() is null is missing; an empty text that is not missing is a value like any other.
// Threading: a plain value. Its views point into the reader and live until its next advance() or parse().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hf {

inline constexpr std::string_view kMissing{};
inline bool is_missing(std::string_view text) noexcept { return text.data() == nullptr; }

/// One entry of a sparse vector: libsvm, libFM and libffm.
struct RawValue {
  std::string_view id;
  float weight = 1.0F;
};

struct RawCategory {
  std::string_view text;         ///< criteo, csv: the whole field (not yet split by the feature's separator)
  std::vector<RawValue> values;  ///< libsvm, libfm, libffm; `text` is unused then
};

struct RawRow {
  std::optional<float> label;  ///< 0 or 1; empty where the row has none
  std::vector<std::string_view> numeric;
  std::vector<RawCategory> categorical;
};

}  // namespace hf
