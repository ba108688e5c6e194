// One registered pool of memory per rank, exposed to all ranks for one-sided access: the narrow contract of the data
// plane. One file per backend (shm_window, mpi_window); `make_window` chooses. What a backend can do is said by its
// traits and by `direct`: nobody outside the backends asks which one it is.
//
// Invariants:
//   1. the pool is zero when the window appears, and never moves;
//   2. bytes put by one rank to one target are visible there after `flush(target)` returns;
//   3. a put may become visible in any order and torn at any byte before that: readers validate (codec/message.hpp,
//      codec/credit.hpp).
// Threading: put, flush and progress may be called from several threads at once (MPI_THREAD_MULTIPLE), also for the
// same target; the bytes they put must not overlap.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "core/config.hpp"
#include "core/types.hpp"

namespace hf {

struct WindowTraits {
  bool can_ring;            ///< peers can wake a thread that sleeps on a bell in its own pool
  bool needs_progress;      ///< what others put here may move only while this rank calls progress()
  bool survives_peer_loss;  ///< put and flush to live peers go on after another peer has died
};

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
  /// Which backend it is, for reports.
  virtual Transport transport() const noexcept = 0;

  const WindowTraits& traits() const noexcept { return traits_; }
  std::span<std::byte> local() const noexcept { return local_; }

 protected:
  explicit Window(const WindowTraits& traits) : traits_(traits) {}
  std::span<std::byte> local_;

 private:
  WindowTraits traits_;
};

/// `automatic` becomes shm when all ranks share one node, mpi otherwise.
/// Collective over MPI_COMM_WORLD. Throws: ConfigError for shm over several nodes, MpiError.
std::unique_ptr<Window> make_window(Transport transport, std::size_t pool_bytes);

}  // namespace hf
