#include "comm/liveness.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>

#include "core/error.hpp"
#include "core/log.hpp"

namespace hf {

std::uint64_t Liveness::beats_of(Rank peer) const noexcept {
  auto* word = reinterpret_cast<std::uint64_t*>(window_.local().data() + layout_.beat_offset(peer));
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_relaxed);
}

std::string Liveness::name(Rank peer) const {
  return fmt::format("rank {} ({})", peer.value,
                     to_string(roles_.role_of_rank[static_cast<std::size_t>(peer.value)]));
}

PeerWatch::PeerWatch(const Liveness* liveness, const std::vector<Rank>& peers) : liveness_(liveness) {
  if (!liveness) return;
  for (const Rank peer : peers)
    if (peer != liveness->me()) peers_.push_back({.rank = peer});
}

void PeerWatch::forget(Rank peer) {
  std::erase_if(peers_, [&](const Peer& p) { return p.rank == peer; });
}

void PeerWatch::look(Clock::time_point now) noexcept {
  for (Peer& p : peers_) {
    const std::uint64_t beats = liveness_->beats_of(p.rank);
    if (beats == p.beats) continue;
    p.beats = beats;
    p.heard = now;
  }
}

std::string PeerWatch::silent(Clock::time_point now, Clock::time_point since, double seconds) const {
  std::string text;
  for (const Peer& p : peers_) {
    const double age = std::chrono::duration<double>(now - std::max(p.heard, since)).count();
    if (age < seconds) continue;
    text += fmt::format("{}{} for {:.3g} s", text.empty() ? "" : ", ", liveness_->name(p.rank), age);
  }
  return text;
}

void Patience::check(const std::function<std::string()>& what) {
  const auto now = Clock::now();
  const auto timeout =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds_));
  if (!waiting_) {
    waiting_ = true;
    since_ = next_look_ = now;
    next_word_ = now + timeout;
  }
  // Ten looks per timeout are enough, and a look costs a load per peer.
  if (now >= next_look_) {
    watch_.look(now);
    next_look_ = now + std::min<Clock::duration>(timeout / 10, std::chrono::milliseconds(100));
  }
  if (now - since_ < timeout) return;
  const double waited = std::chrono::duration<double>(now - since_).count();
  if (!watch_.active())
    throw MpiError(
        fmt::format("waited {:g} s for {} (cluster.wait_timeout_seconds)", timeout_seconds_, what()));
  if (const std::string silent = watch_.silent(now, since_, timeout_seconds_); !silent.empty())
    throw MpiError(
        fmt::format("waited {:.3g} s for {}; no sign of life from {} (cluster.wait_timeout_seconds)", waited,
                    what(), silent));
  if (now < next_word_) return;
  next_word_ += timeout;
  spdlog::warn("waiting for {} for {:.3g} s so far; all that are waited for are alive", what(), waited);
}

}  // namespace hf
