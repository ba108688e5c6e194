// Which rank plays which role: a pure function of the launch (hosts of the ranks) and the configuration.
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/types.hpp"

namespace hf {

enum class Role : std::uint8_t { ps, worker, hybrid };
const char* to_string(Role role) noexcept;

struct RoleMap {
  std::vector<Role> role_of_rank;
  std::vector<Rank> server_ranks;  ///< ServerId → rank, ascending (ps and hybrid)
  std::vector<Rank> worker_ranks;  ///< WorkerId → rank, ascending (worker and hybrid)

  bool is_server(Rank r) const noexcept {
    return role_of_rank[static_cast<std::size_t>(r.value)] != Role::worker;
  }
  bool is_worker(Rank r) const noexcept {
    return role_of_rank[static_cast<std::size_t>(r.value)] != Role::ps;
  }
};

/// What each rank asked for, gathered: its host and its --role (automatic where none was given).
struct RankInfo {
  std::string host;
  RoleChoice role = RoleChoice::automatic;
};

/// Rules, in this order: explicit --role on every rank; --ps N; --ps-ratio P:W (servers = max(1,
/// round(size·P/(P+W)))); otherwise one rank = hybrid, more ranks = ratio 1:3 with at least one worker.
/// Servers are placed on the nodes in turn (spread: the first rank of each node, then the second, …) or on
/// the first ranks (packed). Throws: ConfigError for explicit roles on some ranks only, roles together with
/// --ps/--ps-ratio, both of those, no server, no worker, more servers than ranks-1, or fewer shards than
/// servers. The text lists all problems.
RoleMap assign_roles(const std::vector<RankInfo>& ranks, const ClusterConfig& config);

}  // namespace hf
