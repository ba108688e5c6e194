// Silence of a mailbox is not death: who waits goes on while the beats of those that are waited for go on.
#include "comm/liveness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <chrono>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "comm/heartbeat.hpp"
#include "comm/idle.hpp"
#include "comm/mailbox.hpp"
#include "comm/mpi.hpp"
#include "comm/server_port.hpp"
#include "comm_test_support.hpp"
#include "core/log.hpp"

namespace hf {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr double kTimeout = 1.0;

/// What is logged while this lives.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }
  int count(const std::string& word) const {
    int n = 0;
    const std::string all = text();
    for (std::size_t at = all.find(word); at != all.npos; at = all.find(word, at + 1)) ++n;
    return n;
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

/// Rank 0 is a server, the others are workers; everybody beats until told otherwise.
class Liveliness : public testing::TestWithParam<Transport> {
 protected:
  Communicator world_ = Communicator::world();
  int rank_ = world_.rank();
  RoleMap roles_ = test::role_map("p" + std::string(static_cast<std::size_t>(world_.size() - 1), 'w'));
  PoolLayout layout_{roles_, world_.size() > 1 ? test::smallest_pool(roles_) : 1 << 20};
  std::unique_ptr<Window> window_ = make_window(GetParam(), layout_.pool_bytes());
  Liveness liveness_{*window_, layout_, roles_, Rank{rank_}};
  Heartbeat heartbeat_{*window_, layout_, roles_, Rank{rank_}, kTimeout};
  std::optional<Pacemaker> pacemaker_{std::in_place, heartbeat_, *window_};

  void send_to_server() {
    RingSender(*window_, layout_.request_ring(WorkerId{static_cast<std::uint32_t>(rank_ - 1)}, ServerId{0}),
               PoolLayout::server_bell_offset())
        .commit({.kind = MessageKind::clock});
  }
  /// Waits for a message of worker 0.
  void serve_one() {
    ServerPort port(*window_, layout_, roles_, ServerId{0}, kTimeout, &liveness_);
    port.idle().wait([&] { return port.receive(WorkerId{0}).has_value(); },
                     [] { return std::string("a request"); });
  }
};

TEST_P(Liveliness, AServerWithoutRequestsWaitsForALivingWorker) {
  if (rank_ == 0) {
    const LogCapture log;
    const auto start = Clock::now();
    ASSERT_NO_THROW(serve_one());
    EXPECT_GE(Clock::now() - start, 2500ms);
    // A word per timeout about what it waits for.
    EXPECT_GE(log.count("waiting for a request"), 2) << log.text();
    EXPECT_LE(log.count("waiting for a request"), 4) << log.text();
  } else {
    std::this_thread::sleep_for(3500ms);
    if (rank_ == 1) send_to_server();
  }
  HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

TEST_P(Liveliness, AWorkerWhoseBeatStopsIsNamed) {
  if (rank_ == 1) {
    std::this_thread::sleep_for(1500ms);
    pacemaker_->stop();
  }
  if (rank_ == 0) {
    const auto start = Clock::now();
    try {
      serve_one();
      ADD_FAILURE() << "served";
    } catch (const MpiError& e) {
      EXPECT_THAT(e.what(), HasSubstr("s for a request; no sign of life from rank 1 (worker) for 1"));
      EXPECT_THAT(e.what(), testing::Not(HasSubstr("rank 2")));
      EXPECT_EQ(e.exit_code(), ExitCode::transport);
    }
    const auto took = Clock::now() - start;
    EXPECT_GE(took, 2200ms);
    EXPECT_LE(took, 6s);
  } else if (rank_ == 1) {
    // Nobody but the window's owner moves puts that are on their way here.
    const auto until = Clock::now() + 3s;
    while (Clock::now() < until) {
      window_->progress();
      std::this_thread::sleep_for(1ms);
    }
  }
  HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

TEST_P(Liveliness, ACollectiveWaitsForALivingRank) {
  world_.set_timeout(kTimeout);
  world_.watch(liveness_, nullptr);
  if (rank_ == 1) std::this_thread::sleep_for(3s);
  const auto start = Clock::now();
  ASSERT_NO_THROW(world_.barrier("the rank that sleeps"));
  if (rank_ == 0) {
    EXPECT_GE(Clock::now() - start, 2s);
  }
}

TEST_P(Liveliness, ACollectiveNamesTheSilentRank) {
  world_.set_timeout(kTimeout);
  world_.watch(liveness_, nullptr);
  if (rank_ == 1) {
    pacemaker_->stop();
    const auto until = Clock::now() + 3s;
    while (Clock::now() < until) {
      window_->progress();
      std::this_thread::sleep_for(1ms);
    }
    world_.barrier("the others, who left at their deadline");
  } else {
    try {
      world_.barrier("everybody");
      ADD_FAILURE() << "the barrier did not wait for rank 1";
    } catch (const MpiError& e) {
      EXPECT_THAT(e.what(), HasSubstr("s for everybody; no sign of life from rank 1 (worker) for "));
      EXPECT_THAT(e.what(), testing::Not(HasSubstr("rank 2")));
    }
  }
  HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

TEST_P(Liveliness, TheThreadThatWaitsMayBeatItself) {
  // A ps whose window needs progress: no thread of its own, its waits beat.
  pacemaker_.reset();
  const std::uint64_t before = liveness_.beats_of(Rank{1 - std::min(rank_, 1)});
  if (rank_ < 2) {
    Idle idle(*window_, PoolLayout::worker_bell_offset(), 10 * kTimeout);
    idle.beat_with(&heartbeat_);
    const auto until = Clock::now() + 2s;
    idle.wait([&] { return Clock::now() > until; }, [] { return std::string("the time"); });
  }
  world_.barrier("beats");
  window_->progress();
  if (rank_ < 2) {
    EXPECT_GE(liveness_.beats_of(Rank{1 - rank_}), before + 4);
  }
  world_.barrier("looks");
}

INSTANTIATE_TEST_SUITE_P(Transports, Liveliness, testing::Values(Transport::shm, Transport::mpi),
                         [](const auto& i) { return i.param == Transport::shm ? "shm" : "mpi"; });

TEST(Patience, OurOwnRankIsAliveAndAForgottenOneIsNotWaitedFor) {
  const RoleMap roles = test::role_map("hw");
  const PoolLayout layout(roles, 1 << 20);
  const auto window = make_window(Transport::shm, layout.pool_bytes());
  const Liveness liveness(*window, layout, roles, Rank{0});
  const std::function<std::string()> what = [] { return std::string("rain"); };
  const LogCapture log;
  Patience patience(0.1, PeerWatch(&liveness, {Rank{0}, Rank{1}}));
  patience.watch().forget(Rank{1});
  const auto start = Clock::now();
  for (; Clock::now() - start < 550ms; std::this_thread::sleep_for(5ms))
    ASSERT_NO_THROW(patience.check(what));
  EXPECT_GE(log.count("waiting for rain"), 3) << log.text();
  EXPECT_LE(log.count("waiting for rain"), 5) << log.text();
  // Something happens: the wait begins anew.
  Patience other(0.3, PeerWatch(&liveness, {Rank{1}}));
  for (int i = 0; i < 8; ++i, std::this_thread::sleep_for(100ms)) {
    other.restart();
    ASSERT_NO_THROW(other.check(what));
  }
  HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

}  // namespace
}  // namespace hf
