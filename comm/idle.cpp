#include "comm/idle.hpp"

#include <linux/futex.h>
#include <spdlog/fmt/fmt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <thread>

#include "core/error.hpp"

namespace hf {
namespace {

constexpr std::uint64_t kSpins = 60;  // ~ 3 µs of pause instructions
constexpr std::uint64_t kYields = 8;

long futex(std::atomic<std::uint32_t>* word, int op, std::uint32_t value, const timespec* timeout) noexcept {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), op, value, timeout, nullptr, 0);
}

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
  const auto now = std::chrono::steady_clock::now();
  if (round == kSpins + kYields) idle_since_ = now;
  if (what && std::chrono::duration<double>(now - idle_since_).count() > timeout_seconds_)
    throw MpiError(fmt::format("waited {:g} s for ", timeout_seconds_) + (*what)() +
                   " (cluster.wait_timeout_seconds)");
  if (bell_) {
    // A ring between before_poll() and here has changed `rings`, so the kernel returns at once.
    bell_->sleepers.store(1, std::memory_order_seq_cst);
    const timespec timeout{0, 100'000'000};
    futex(&bell_->rings, FUTEX_WAIT, seen, &timeout);
    bell_->sleepers.store(0, std::memory_order_relaxed);
  } else {
    const auto naps = round - kSpins - kYields;
    std::this_thread::sleep_for(std::chrono::microseconds(std::min<std::uint64_t>(20 + naps * 4, 500)));
  }
}

void ring_bell(std::byte* pool, std::size_t bell_offset) noexcept {
  if (!pool) return;
  auto* bell = reinterpret_cast<Bell*>(pool + bell_offset);
  bell->rings.fetch_add(1, std::memory_order_seq_cst);
  if (bell->sleepers.load(std::memory_order_seq_cst) != 0) futex(&bell->rings, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace hf
