// One registered pool of memory per rank, exposed to all ranks for one-sided access: the narrow contract of the data
// plane. Two backends:
//   shm  MPI_Win_allocate_shared: all ranks on one node; peers' pools are plain memory (`direct`), a put is a memcpy
//   mpi  MPI_Win_allocate + MPI_Put + MPI_Win_flush: any ranks, whichever one-sided component Open MPI picks
//
// Invariants:
//   1. the pool is zero when the window appears, and never moves;
//   2. bytes put by one rank to one target are visible there after `flush(target)` returns;
//   3. a put may become visible in any order before that: readers validate (codec/message.hpp).
// Threading: put, flush and progress may be called from several threads at once (MPI_THREAD_MULTIPLE), also for the
// same target; the bytes they put must not overlap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/config.hpp"
#include "core/types.hpp"

namespace hf {

/// At the start of each pool, one per side of a rank (server, worker): rung after something was delivered, so
/// that a receiver can sleep in the kernel. Works between processes that share memory only.
struct alignas(64) Bell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleepers;
};
static_assert(sizeof(Bell) == 64 && std::atomic<std::uint32_t>::is_always_lock_free);

class Window {
 public:
  virtual ~Window() = default;
  /// Throws: MpiError. Requires: `data` unchanged until flush(target).
  virtual void put(Rank target, std::size_t offset, const void* data, std::size_t bytes) = 0;
  virtual void flush(Rank target) = 0;
  /// The target's pool as plain memory, or nullptr where it is not.
  virtual std::byte* direct(Rank target) noexcept = 0;
  /// Lets the library move data that others put here or wait for (software progress).
  virtual void progress() = 0;
  virtual Transport transport() const noexcept = 0;

  std::span<std::byte> local() const noexcept { return local_; }

 protected:
  std::span<std::byte> local_;
};

/// `automatic` becomes shm when all ranks share one node, mpi otherwise.
/// Collective over MPI_COMM_WORLD. Throws: ConfigError for shm over several nodes, MpiError.
std::unique_ptr<Window> make_window(Transport transport, std::size_t pool_bytes);

}  // namespace hf
