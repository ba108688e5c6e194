#include "comm/idle.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace hf {
namespace {

constexpr std::uint64_t kSpins = 60;  // ~ 3 µs of pause instructions
constexpr std::uint64_t kYields = 8;

void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace

void Idle::nothing(std::uint32_t seen, const std::function<std::string()>* what) {
  window_.progress();
  const std::uint64_t round = idle_rounds_++;
  if (round < kSpins) {
    pause_cpu();
    return;
  }
  if (round < kSpins + kYields) {
    std::this_thread::yield();
    return;
  }
  if (heartbeat_) heartbeat_->beat();
  if (what) patience_.check(*what);
  if (bell_) {
    bell_->sleep(seen);
  } else {
    const auto naps = round - kSpins - kYields;
    std::this_thread::sleep_for(std::chrono::microseconds(std::min<std::uint64_t>(20 + naps * 4, 500)));
  }
}

}  // namespace hf
