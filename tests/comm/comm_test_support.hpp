// What the tests of comm/ share: role maps as letters, the smallest pool, deterministic bytes.
#pragma once

#include <cstdint>
#include <string>

#include "comm/pool_layout.hpp"
#include "core/error.hpp"
#include "core/random.hpp"
#include "routing/placement.hpp"

namespace hf::test {

/// One letter per rank: p = ps, w = worker, h = hybrid.
inline RoleMap role_map(const std::string& letters) {
  RoleMap roles;
  for (std::size_t r = 0; r < letters.size(); ++r) {
    const Rank rank{static_cast<std::int32_t>(r)};
    roles.role_of_rank.push_back(letters[r] == 'p'   ? Role::ps
                                 : letters[r] == 'w' ? Role::worker
                                                     : Role::hybrid);
    if (roles.is_server(rank)) roles.server_ranks.push_back(rank);
    if (roles.is_worker(rank)) roles.worker_ranks.push_back(rank);
  }
  return roles;
}

inline bool pool_suffices(const RoleMap& roles, std::size_t bytes) {
  try {
    const PoolLayout layout(roles, bytes);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

/// The smallest pool that PoolLayout accepts: eight slots of 4 KiB in each ring of the rank with the most
/// peers.
inline std::size_t smallest_pool(const RoleMap& roles) {
  std::size_t too_small = 0, enough = std::size_t{1} << 40;
  while (enough - too_small > 1) {
    const std::size_t middle = too_small + (enough - too_small) / 2;
    (pool_suffices(roles, middle) ? enough : too_small) = middle;
  }
  return enough;
}

inline float random_float(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return uniform_float(mix64(mix64(a, b), c)) - 0.5F;
}

}  // namespace hf::test
