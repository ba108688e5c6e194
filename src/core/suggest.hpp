// "Did you mean …?": the nearest of a few valid names.
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment distance).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that is nearest to `word` (case, '-' and '_' do not count), or "" where none is near enough
/// to be what was meant.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace hf
