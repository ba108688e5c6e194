// Adaptive waiting: spin briefly, then yield, then sleep in the kernel until the bell rings (WindowTraits::can_ring) or for
// a short, growing time. Every wait says what it waits for, and ends by the rule of comm/liveness.hpp.
//
//   loop:  seen = idle.before_poll();  if (poll()) idle.busy(); else idle.nothing(seen, what);
//
// Threading: one object per waiting thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "comm/bell.hpp"
#include "comm/heartbeat.hpp"
#include "comm/liveness.hpp"
#include "comm/window.hpp"

namespace hf {

class Idle {
 public:
  /// `bell_offset`: of our own bell in our pool. `watch`: whom this thread waits for.
  Idle(Window& window, std::size_t bell_offset, double timeout_seconds, PeerWatch watch = {})
      : window_(window),
        bell_(window.traits().can_ring ? reinterpret_cast<Bell*>(window.local().data() + bell_offset)
                                       : nullptr),
        patience_(timeout_seconds, std::move(watch)) {}

  /// This thread gives the rank's signs of life, whether there is something to do or not.
  void beat_with(Heartbeat* heartbeat) noexcept { heartbeat_ = heartbeat; }
  PeerWatch& watch() noexcept { return patience_.watch(); }

  std::uint32_t before_poll() const noexcept {
    return bell_ ? bell_->rings.load(std::memory_order_acquire) : 0;
  }
  void busy() {
    idle_rounds_ = 0;
    patience_.restart();
    if (heartbeat_) heartbeat_->beat();
  }
  /// Throws: MpiError "waited N s for WHAT" (liveness.hpp); never when `what` is null.
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
  Bell* bell_;  // nullptr where peers cannot ring it
  Patience patience_;
  Heartbeat* heartbeat_ = nullptr;
  std::uint64_t idle_rounds_ = 0;
};

}  // namespace hf
