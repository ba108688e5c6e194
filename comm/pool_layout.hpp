// Where everything lies in the pools: a pure function of (roles, pool size), so nobody has to send offsets around.
//
//   pool(rank) := bell(server) bell(worker) board beats credits rings
//   board      := one 64-byte line per worker: its latest progress (only that of worker 0's rank is used)
//   beats      := ranks × beat:u64, padded to 64 bytes: signs of life, each word written by its rank
//   credits    := one 64-byte line per ring that this rank sends into, written by the ring's owner: messages consumed
//                 there, as a u64 in shared memory, elsewhere as a credit of codec/credit.hpp
//   rings      := one per (worker, server) pair and direction that ends here; slots of equal size
//
// A rank that is a server receives one request ring from each worker; a worker one reply ring from each server.
// Threading: immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/types.hpp"
#include "routing/placement.hpp"

namespace hf {

struct Ring {
  Rank owner;              ///< the receiver, in whose pool it lies
  std::size_t offset = 0;  ///< in the owner's pool
  std::uint32_t slots = 0;
  std::size_t slot_bytes = 0;
  Rank sender;
  std::uint32_t sender_id = 0;    ///< WorkerId or ServerId, as in the messages' headers
  std::size_t credit_offset = 0;  ///< in the sender's pool
};

class PoolLayout {
 public:
  /// Throws: ConfigError when the pool is too small for the number of peers (says the smallest size that works).
  PoolLayout(const RoleMap& roles, std::size_t pool_bytes);

  Ring request_ring(WorkerId from, ServerId to) const;
  Ring reply_ring(ServerId from, WorkerId to) const;

  static constexpr std::size_t server_bell_offset() noexcept { return 0; }
  static constexpr std::size_t worker_bell_offset() noexcept { return 64; }
  static constexpr std::size_t board_offset(WorkerId worker) noexcept {
    return 128 + std::size_t{worker.value} * 64;
  }
  /// Of the sign of life of `rank`, in any pool.
  std::size_t beat_offset(Rank rank) const noexcept {
    return beats_offset() + static_cast<std::size_t>(rank.value) * sizeof(std::uint64_t);
  }
  /// The smallest slot of any ring: bounds the widest row.
  std::size_t smallest_slot_bytes() const noexcept;
  std::size_t pool_bytes() const noexcept { return pool_bytes_; }

 private:
  struct Geometry {
    std::size_t rings_offset;
    std::uint32_t slots;
    std::size_t slot_bytes;
  };
  Geometry geometry(Rank rank) const;
  std::size_t beats_offset() const noexcept;
  std::size_t credits_offset() const noexcept;
  RoleMap roles_;
  std::size_t pool_bytes_;
};

}  // namespace hf
