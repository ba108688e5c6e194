// A bell lets a receiver sleep in the kernel until something was delivered. One per side of a rank (server, worker) at the
// start of its pool. It works between processes that share the memory (WindowTraits::can_ring).
// Threading: one sleeping thread, any number of ringing ones, of any process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace hf {

struct alignas(64) Bell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleepers;

  /// One more ring; a system call only where somebody sleeps.
  void ring() noexcept;
  /// Sleeps until the number of rings is no longer `seen`, for 100 ms at most.
  void sleep(std::uint32_t seen) noexcept;
};
static_assert(sizeof(Bell) == 64 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Rings a peer's bell after a delivery. `pool`: the peer's pool as plain memory, or nullptr (then nothing happens).
inline void ring_bell(std::byte* pool, std::size_t bell_offset) noexcept {
  if (pool) reinterpret_cast<Bell*>(pool + bell_offset)->ring();
}

}  // namespace hf
