#include "comm/bell.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace hf {
namespace {

long futex(std::atomic<std::uint32_t>* word, int op, std::uint32_t value, const timespec* timeout) noexcept {
  return syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), op, value, timeout, nullptr, 0);
}

}  // namespace

void Bell::ring() noexcept {
  rings.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0) futex(&rings, FUTEX_WAKE, INT_MAX, nullptr);
}

void Bell::sleep(std::uint32_t seen) noexcept {
  // A ring between the caller's look at `rings` and here has changed it, so the kernel returns at once.
  sleepers.store(1, std::memory_order_seq_cst);
  const timespec timeout{0, 100'000'000};
  futex(&rings, FUTEX_WAIT, seen, &timeout);
  sleepers.store(0, std::memory_order_relaxed);
}

}  // namespace hf
