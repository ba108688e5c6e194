// What libsvm, libFM and libffm lines have in common: blanks between tokens, "#" comments, labels, numbers.
// Threading: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hf::sparse_text {

/// The line before a "#".
std::string_view without_comment(std::string_view line) noexcept;

/// Removes the next token and the blanks before it; empty at the end of the line.
std::string_view take_token(std::string_view& line) noexcept;

/// Takes the label off the line. 1 and +1 are positive, 0 and -1 negative, also as "1.0". A line that starts
/// with a feature has no label, which is an error where one is required. False: `reason` says why.
bool take_label(std::string_view& line, bool required, std::optional<float>& label, std::string& reason);

/// A feature's number: digits that fit into 64 bits.
bool is_id(std::string_view text) noexcept;

/// A finite float, possibly with a plus sign.
std::optional<float> parse_weight(std::string_view text) noexcept;

}  // namespace hf::sparse_text
