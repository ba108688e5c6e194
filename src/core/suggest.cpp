#include "core/suggest.hpp"

#include <algorithm>
#include <cctype>

namespace hf {
namespace {

std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 100) return {};  // garbage, not a misspelt name
  const std::string wanted = folded(word);
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::string name = folded(candidate);
    const std::size_t longer = std::max(wanted.size(), name.size());
    const std::size_t allowed = longer <= 3 ? 1 : std::max<std::size_t>(2, longer / 3);
    std::size_t distance = edit_distance(wanted, name);
    // A word that was cut short or carries a suffix ("batch", "workdir_path") is as near as two typing
    // errors.
    if (distance > 2 && wanted.size() >= 4 && name.size() >= 4 &&
        (name.starts_with(wanted) || wanted.starts_with(name)))
      distance = 2;
    if (distance <= allowed && distance < longer && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace hf
