#include "table/unique.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"

namespace hf {

void UniqueIds::build(std::span<const RowId> ids, std::vector<RowId>& unique,
                      std::vector<std::uint32_t>& inverse) {
  constexpr std::size_t kAhead = 16;
  const std::size_t n = ids.size();
  HF_CHECK(n < std::numeric_limits<std::uint32_t>::max(), "fewer than 2^32 ids in a batch");
  map_.clear();
  unique.clear();
  inverse.resize(n);
  for (std::size_t i = 0; i < std::min(kAhead, n); ++i) map_.prefetch(ids[i]);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + kAhead < n) map_.prefetch(ids[i + kAhead]);
    const std::uint32_t number = map_.insert(ids[i]);
    if (number == unique.size()) unique.push_back(ids[i]);
    inverse[i] = number;
  }
}

}  // namespace hf
