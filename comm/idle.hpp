// Adaptive waiting: spin briefly, then yield, then sleep in the kernel until the bell rings (shared memory) or for a
// short, growing time (no shared memory). Every wait has a deadline and says what it waits for.
//
//   loop:  seen = idle.before_poll();  if (poll()) idle.busy(); else idle.nothing(seen, what);
//
// Threading: one object per waiting thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "comm/window.hpp"

namespace hf {

class Idle {
 public:
  /// `bell`: our own bell, or nullptr where peers cannot ring it.
  Idle(Window& window, Bell* bell, double timeout_seconds)
      : window_(window), bell_(bell), timeout_seconds_(timeout_seconds) {}

  std::uint32_t before_poll() const noexcept {
    return bell_ ? bell_->rings.load(std::memory_order_acquire) : 0;
  }
  void busy() noexcept { idle_rounds_ = 0; }
  /// Throws: MpiError "waited N s for WHAT" after the timeout since the last busy(); never when `what` is null.
  void nothing(std::uint32_t seen, const std::function<std::string()>* what = nullptr);

  /// Polls until it returns true.
  template <class Poll>
  void wait(Poll&& poll, const std::function<std::string()>& what) {
    busy();
    for (;;) {
      const std::uint32_t seen = before_poll();
      if (poll()) return;
      nothing(seen, &what);
    }
  }

 private:
  Window& window_;
  Bell* bell_;
  double timeout_seconds_;
  std::uint64_t idle_rounds_ = 0;
  std::chrono::steady_clock::time_point idle_since_{};
};

/// Rings a peer's bell after a delivery. `pool`: the peer's pool as plain memory, or nullptr (then nothing happens).
void ring_bell(std::byte* pool, std::size_t bell_offset) noexcept;

}  // namespace hf
