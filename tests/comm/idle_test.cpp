#include "comm/idle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "comm/mpi.hpp"
#include "core/error.hpp"

namespace hf {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class IdleTest : public testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<Window> window_ = make_window(GetParam() ? Transport::shm : Transport::mpi, 4096);
};

TEST_P(IdleTest, WaitEndsAtItsDeadlineAndSaysWhatItWaitedFor) {
  Idle idle(*window_, 0, 0.3);
  const auto start = Clock::now();
  try {
    idle.wait([] { return false; }, [] { return std::string("the moon"); });
    FAIL() << "the wait ended without a result";
  } catch (const MpiError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("waited 0.3 s for the moon"));
    EXPECT_EQ(e.exit_code(), ExitCode::transport);
  }
  EXPECT_GE(Clock::now() - start, 300ms);
}

TEST_P(IdleTest, BusyMovesTheDeadline) {
  Idle idle(*window_, 0, 0.5);
  const auto start = Clock::now();
  const std::function<std::string()> what = [] { return std::string("nothing"); };
  // Longer than the deadline altogether, with something to do in between.
  while (Clock::now() - start < 1200ms) {
    idle.busy();
    for (int i = 0; i < 70; ++i) idle.nothing(idle.before_poll(), &what);
  }
}

TEST_P(IdleTest, WithoutATextThereIsNoDeadline) {
  Idle idle(*window_, 0, 0.01);
  const auto start = Clock::now();
  while (Clock::now() - start < 300ms) idle.nothing(idle.before_poll());
}

INSTANTIATE_TEST_SUITE_P(Backends, IdleTest, testing::Values(true, false),
                         [](const auto& i) { return i.param ? "bell" : "naps"; });

TEST(Bell, WakesASleeperEachTime) {
  // A lost ring costs a sleep of 100 ms: 200 of them would take 20 s.
  constexpr int kRounds = 200;
  const auto window = make_window(Transport::shm, 4096);
  std::atomic<int> delivered{0}, seen{0};
  std::thread sleeper([&] {
    Idle idle(*window, 0, 30);
    for (int i = 1; i <= kRounds; ++i) {
      idle.wait([&] { return delivered.load() >= i; }, [] { return std::string("a delivery"); });
      seen = i;
    }
  });
  const auto start = Clock::now();
  for (int i = 1; i <= kRounds; ++i) {
    std::this_thread::sleep_for(i % 2 == 0 ? 2ms : 0ms);  // asleep already, or just about to
    delivered = i;
    ring_bell(window->local().data(), 0);
    while (seen.load() < i) std::this_thread::yield();
  }
  sleeper.join();
  EXPECT_LT(Clock::now() - start, 10s);
}

TEST(Bell, WithoutPlainMemoryNothingHappens) { ring_bell(nullptr, 0); }

}  // namespace
}  // namespace hf
