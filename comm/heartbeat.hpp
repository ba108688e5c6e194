// Signs of life. Every rank counts up a word of its own in each other rank's pool (PoolLayout::beat_offset), whatever its
// training or service thread is at: silence of a mailbox is not death, silence of this word is (comm/liveness.hpp).
//
// Who calls beat() on a rank: a Pacemaker, the thread below; or, where a rank shall have one thread in MPI (a `ps` whose
// window needs progress), its service loop, by Idle::beat_with and Communicator::watch.
// Cost: one word of 8 bytes to each other rank per period, a store in shared memory, else a put and a flush.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/pool_layout.hpp"
#include "comm/window.hpp"

namespace hf {

/// Threading: one thread at a time.
class Heartbeat {
 public:
  /// The period is a second, or a quarter of the wait timeout where that is shorter.
  Heartbeat(Window& window, const PoolLayout& layout, const RoleMap& roles, Rank me, double timeout_seconds);
  /// Beats where the period has passed; otherwise only looks at the clock. Throws: MpiError.
  void beat();
  std::chrono::duration<double> period() const noexcept { return period_; }

 private:
  Window& window_;
  std::size_t offset_;  // of our word, the same in every pool
  std::vector<Rank> peers_;
  std::chrono::duration<double> period_;
  std::chrono::steady_clock::time_point next_{};
  std::uint64_t beats_ = 0;  // also the source of the puts
};

/// A thread of a rank that beats, and drives the window's progress where that needs it: what others put here, or wait for,
/// moves only while somebody on this rank calls into the library, and a worker computes for long.
class Pacemaker {
 public:
  /// Both must outlive it. An error of the transport ends the job.
  Pacemaker(Heartbeat& heartbeat, Window& window);
  ~Pacemaker();
  /// Ends the thread: no beat after this returns.
  void stop() noexcept;

 private:
  void run();
  Heartbeat& heartbeat_;
  Window& window_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hf
