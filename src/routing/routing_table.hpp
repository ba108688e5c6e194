// shard → server: consistent hashing with bounded load, a pure function of (live servers, num_shards), so
// nobody has to send it around.
//
// Invariants (for num_shards ≥ 10 · servers):
//   1. every shard has exactly one live server;
//   2. max load / mean load ≤ 1.10;
//   3. adding or losing one server moves at most 1.1 × the unavoidable share of shards (the shards of
//      the lost server, or the new server's fair share).
// 3 holds exactly, with nothing moved beyond the unavoidable share, between the sets {0 … n-1} and for the
// loss or return of any one server of such a set. Where more servers are missing already it holds in the
// mean (measured 1.04 – 1.10 for the second to fourth loss); a single case moves up to 5 % of all shards
// more, because a server that is full at 1.10 × the mean makes room for a shard that wants it more. Fewer
// than 10 shards a server: loads differ by at most one.
//
// Algorithm: (a) servers 0, 1, 2, … join one after the other; number k takes floor(shards / (k+1)) from the
// fullest. (b) The shards of missing servers are matched with the live ones, at most 1.10 × the mean each:
// a stable matching (Gale, Shapley 1962) in which a shard prefers the server it came from or the best of a
// rendezvous hash (Thaler, Ravishankar 1998), and a server prefers shards whose first choice it is.
// Cost: O(servers · shards · log shards) time, once for each set of live servers.
// Source: Mirrokni, Thorup, Zadimoghaddam: Consistent Hashing with Bounded Loads (SODA 2018); Lamping,
// Veach: A Fast, Minimal Memory, Consistent Hash Algorithm (2014).
// Threading: immutable after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace hf {

class RoutingTable {
 public:
  /// `live`: ids of the live servers, ascending, not empty. Throws: ConfigError for num_shards < live
  /// servers.
  RoutingTable(std::span<const ServerId> live, std::uint32_t num_shards);

  ServerId server(ShardId shard) const noexcept { return owner_[shard.value]; }
  std::vector<ShardId> shards_of(ServerId server) const;
  std::uint32_t num_shards() const noexcept { return static_cast<std::uint32_t>(owner_.size()); }

 private:
  std::vector<ServerId> owner_;  // by shard
};

}  // namespace hf
