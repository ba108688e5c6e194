// What `convert` learned about the training rows and a reader needs to encode them: vocabularies and moments.
// Invariants: entries of a vocabulary are unique, in row order; entries[i] has row 2 + i of the feature's
// table
//   (row 0 = missing, 1 = out of vocabulary), so the table has entries + 2 rows. stddev > 0.
// Threading: plain values. The layout of statistics.json is in io/README.md.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

struct NumericMoments {
  double mean = 0, stddev = 1;
  bool operator==(const NumericMoments&) const = default;
};

struct Statistics {
  std::map<std::string, NumericMoments> numeric;                 ///< by numeric feature
  std::map<std::string, std::vector<std::string>> vocabularies;  ///< by categorical feature
  bool operator==(const Statistics&) const = default;
};

/// Throws: IoError; FormatError naming the file and the key.
Statistics load_statistics(const std::string& path);

/// Complete or not at all (see atomic_file.hpp). Throws: IoError.
void save_statistics(const Statistics& statistics, const std::string& path);

/// Any bytes as valid UTF-8 and back: a backslash is doubled, a byte outside valid UTF-8 becomes "\xHH".
std::string escape_bytes(std::string_view bytes);
/// Throws: FormatError for a backslash sequence that escape_bytes does not write.
std::string unescape_bytes(std::string_view text);

}  // namespace hf
