// Who is alive, and how long a wait may last.
//
//   Liveness    reads the beats (comm/heartbeat.hpp) in this rank's pool; one per rank
//   PeerWatch   the peers that one waiting thread waits for, and when each gave its last sign of life
//   Patience    the rule, for every wait of comm/: a wait ends with an error when for the timeout nothing has happened *and*
//               one of those that are waited for has given no sign of life. While all of them live it goes on, and says in
//               the log once per timeout what it still waits for: a deadlock of living ranks is seen there.
//               Without a Liveness nobody beats, and the timeout alone decides.
//
// A beat may be read torn: any change of the word is a sign of life. Time is that of the waiting rank alone.
// Threading: Liveness is immutable, its readers may be many; PeerWatch and Patience belong to one thread each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "comm/pool_layout.hpp"
#include "comm/window.hpp"

namespace hf {

class Liveness {
 public:
  Liveness(const Window& window, const PoolLayout& layout, const RoleMap& roles, Rank me)
      : window_(window), layout_(layout), roles_(roles), me_(me) {}
  std::uint64_t beats_of(Rank peer) const noexcept;
  Rank me() const noexcept { return me_; }
  /// "rank 3 (worker)"
  std::string name(Rank peer) const;

 private:
  const Window& window_;
  const PoolLayout& layout_;
  const RoleMap& roles_;
  Rank me_;
};

class PeerWatch {
 public:
  using Clock = std::chrono::steady_clock;
  PeerWatch() = default;
  /// `liveness` may be nullptr. Our own rank is always alive and left out.
  PeerWatch(const Liveness* liveness, const std::vector<Rank>& peers);

  bool active() const noexcept { return liveness_ != nullptr; }
  /// Nobody waits for this one any more.
  void forget(Rank peer);
  /// Takes in the beats of now.
  void look(Clock::time_point now) noexcept;
  /// "rank 3 (worker) for 12 s, …": those who are silent since `since` or longer, and for `seconds` at least; "" = nobody.
  std::string silent(Clock::time_point now, Clock::time_point since, double seconds) const;

 private:
  struct Peer {
    Rank rank;
    std::uint64_t beats = 0;
    Clock::time_point heard{};
  };
  const Liveness* liveness_ = nullptr;
  std::vector<Peer> peers_;
};

class Patience {
 public:
  explicit Patience(double timeout_seconds, PeerWatch watch = {})
      : timeout_seconds_(timeout_seconds), watch_(std::move(watch)) {}

  PeerWatch& watch() noexcept { return watch_; }
  /// Something has happened: the wait, if there is one, begins anew.
  void restart() noexcept { waiting_ = false; }
  /// To be called again and again while nothing happens. Throws: MpiError "waited N s for WHAT…" by the rule above.
  void check(const std::function<std::string()>& what);

 private:
  using Clock = PeerWatch::Clock;
  double timeout_seconds_;
  PeerWatch watch_;
  bool waiting_ = false;
  Clock::time_point since_{}, next_look_{}, next_word_{};
};

}  // namespace hf
