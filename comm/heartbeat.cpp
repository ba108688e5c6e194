#include "comm/heartbeat.hpp"

#include <algorithm>
#include <atomic>

#include "comm/abort.hpp"

namespace hf {

Heartbeat::Heartbeat(Window& window, const PoolLayout& layout, const RoleMap& roles, Rank me,
                     double timeout_seconds)
    : window_(window), offset_(layout.beat_offset(me)), period_(std::min(1.0, timeout_seconds / 4)) {
  for (std::size_t r = 0; r < roles.role_of_rank.size(); ++r)
    if (const Rank peer{static_cast<std::int32_t>(r)}; peer != me) peers_.push_back(peer);
}

void Heartbeat::beat() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + std::chrono::duration_cast<std::chrono::steady_clock::duration>(period_);
  ++beats_;
  bool put = false;
  for (const Rank peer : peers_) {
    if (std::byte* pool = window_.direct(peer)) {
      std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(pool + offset_))
          .store(beats_, std::memory_order_relaxed);
    } else {
      window_.put(peer, offset_, &beats_, sizeof beats_);
      put = true;
    }
  }
  if (!put) return;
  for (const Rank peer : peers_)
    if (!window_.direct(peer)) window_.flush(peer);
}

Pacemaker::Pacemaker(Heartbeat& heartbeat, Window& window)
    : heartbeat_(heartbeat), window_(window), thread_([this] { run(); }) {}

Pacemaker::~Pacemaker() { stop(); }

void Pacemaker::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Pacemaker::run() {
  const std::chrono::duration<double> pause =
      window_.traits().needs_progress ? std::chrono::duration<double>(100e-6) : heartbeat_.period();
  try {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      window_.progress();
      heartbeat_.beat();
      lock.lock();
      wake_.wait_for(lock, pause, [this] { return stopping_; });
    }
  } catch (const std::exception& e) {
    abort_job(e);
  }
}

}  // namespace hf
