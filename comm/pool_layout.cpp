#include "comm/pool_layout.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/units.hpp"

namespace hf {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kBells = 2 * kLine;
constexpr std::size_t kMinSlotBytes = 4096;
constexpr std::uint32_t kMinSlots = 8;
// Large enough that the per-message cost vanishes, small enough that a slot stays in a core's L2 between the sender's
// write and the receiver's read, and that a pull of a batch is several messages, which both sides work on at once.
constexpr std::size_t kMaxSlotBytes = 256u << 10;
constexpr std::uint32_t kMaxSlots = 32;

}  // namespace

PoolLayout::PoolLayout(const RoleMap& roles, std::size_t pool_bytes)
    : roles_(roles), pool_bytes_(pool_bytes) {
  const std::size_t servers = roles.server_ranks.size(), workers = roles.worker_ranks.size();
  std::size_t need = 0;
  for (std::size_t r = 0; r < roles.role_of_rank.size(); ++r) {
    const Rank rank{static_cast<std::int32_t>(r)};
    const std::size_t peers = (roles.is_server(rank) ? workers : 0) + (roles.is_worker(rank) ? servers : 0);
    need = std::max(need, credits_offset() + peers * (kLine + kMinSlots * kMinSlotBytes) + 4096);
  }
  if (pool_bytes < need)
    throw ConfigError(fmt::format(
        "cluster.buffer_pool_size: {} is too small for {} servers and {} workers; expected at least {} bytes",
        format_bytes(static_cast<double>(pool_bytes)), servers, workers, need));
}

std::size_t PoolLayout::beats_offset() const noexcept { return kBells + roles_.worker_ranks.size() * kLine; }
std::size_t PoolLayout::credits_offset() const noexcept {
  return beats_offset() + (roles_.role_of_rank.size() * sizeof(std::uint64_t) + kLine - 1) / kLine * kLine;
}

PoolLayout::Geometry PoolLayout::geometry(Rank rank) const {
  const std::size_t servers = roles_.server_ranks.size(), workers = roles_.worker_ranks.size();
  const std::size_t peers = (roles_.is_server(rank) ? workers : 0) + (roles_.is_worker(rank) ? servers : 0);
  Geometry g{};
  g.rings_offset = (credits_offset() + peers * kLine + 4095) / 4096 * 4096;
  const std::size_t ring_bytes = (pool_bytes_ - g.rings_offset) / peers;
  g.slot_bytes = std::clamp(ring_bytes / kMinSlots / kLine * kLine, kMinSlotBytes, kMaxSlotBytes);
  g.slots = static_cast<std::uint32_t>(std::min<std::size_t>(ring_bytes / g.slot_bytes, kMaxSlots));
  return g;
}

Ring PoolLayout::request_ring(WorkerId from, ServerId to) const {
  const Rank owner = roles_.server_ranks[to.value], sender = roles_.worker_ranks[from.value];
  const Geometry g = geometry(owner);
  // Server side of a pool first: request rings by worker; credits of a worker's request rings by server.
  const std::size_t credits_before = roles_.is_server(sender) ? roles_.worker_ranks.size() : 0;
  return {.owner = owner,
          .offset = g.rings_offset + from.value * g.slots * g.slot_bytes,
          .slots = g.slots,
          .slot_bytes = g.slot_bytes,
          .sender = sender,
          .sender_id = from.value,
          .credit_offset = credits_offset() + (credits_before + to.value) * kLine};
}

Ring PoolLayout::reply_ring(ServerId from, WorkerId to) const {
  const Rank owner = roles_.worker_ranks[to.value], sender = roles_.server_ranks[from.value];
  const Geometry g = geometry(owner);
  const std::size_t rings_before = roles_.is_server(owner) ? roles_.worker_ranks.size() : 0;
  return {.owner = owner,
          .offset = g.rings_offset + (rings_before + from.value) * g.slots * g.slot_bytes,
          .slots = g.slots,
          .slot_bytes = g.slot_bytes,
          .sender = sender,
          .sender_id = from.value,
          .credit_offset = credits_offset() + to.value * kLine};
}

std::size_t PoolLayout::smallest_slot_bytes() const noexcept {
  std::size_t smallest = kMaxSlotBytes;
  for (std::size_t r = 0; r < roles_.role_of_rank.size(); ++r)
    smallest = std::min(smallest, geometry(Rank{static_cast<std::int32_t>(r)}).slot_bytes);
  return smallest;
}

}  // namespace hf
