#include "comm/window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "comm/bell.hpp"
#include "comm/mpi.hpp"
#include "comm/window_handle.hpp"
#include "comm_test_support.hpp"
#include "core/error.hpp"

namespace hf {
namespace {

class WindowTest : public testing::TestWithParam<Transport> {
 protected:
  Communicator world_ = Communicator::world();
  int rank_ = world_.rank(), size_ = world_.size();
};

std::byte pattern(int from, int to, std::size_t i) {
  return static_cast<std::byte>(mix64(static_cast<std::uint64_t>(from * 64 + to), i));
}

TEST_P(WindowTest, EveryPutIsThereAfterFlush) {
  constexpr std::size_t kPart = 12345;  // not a multiple of anything
  const auto window = make_window(GetParam(), kPart * static_cast<std::size_t>(size_));
  EXPECT_EQ(window->transport(), GetParam());
  std::vector<std::byte> data(kPart);
  for (int to = 0; to < size_; ++to) {
    for (std::size_t i = 0; i < kPart; ++i) data[i] = pattern(rank_, to, i);
    window->put(Rank{to}, kPart * static_cast<std::size_t>(rank_), data.data(), kPart);
    window->flush(Rank{to});
    std::fill(data.begin(), data.end(), std::byte{0});  // the source is free after the flush
  }
  world_.barrier("all puts");
  window->progress();
  for (int from = 0; from < size_; ++from)
    for (std::size_t i = 0; i < kPart; ++i)
      ASSERT_EQ(window->local()[kPart * static_cast<std::size_t>(from) + i], pattern(from, rank_, i))
          << "byte " << i << " from " << from;
  world_.barrier("all checks");
}

TEST_P(WindowTest, PoolIsZeroAndWholePagesAndAligned) {
  // Twice: the second window must not show what was in the first.
  for (int round = 0; round < 2; ++round) {
    const auto window = make_window(GetParam(), 300'000);
    EXPECT_GE(window->local().size(), 300'000U);
    EXPECT_EQ(window->local().size() % 4096, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window->local().data()) % alignof(Bell), 0U);
    EXPECT_TRUE(std::all_of(window->local().begin(), window->local().end(),
                            [](std::byte b) { return b == std::byte{0}; }))
        << "round " << round;
    world_.barrier("all looks");
    std::memset(window->local().data(), 0xEE, window->local().size());
    world_.barrier("all writes");
  }
}

TEST_P(WindowTest, DirectMemoryOnlyInSharedMemory) {
  const auto window = make_window(GetParam(), 4096);
  for (int r = 0; r < size_; ++r) {
    std::byte* peer = window->direct(Rank{r});
    if (GetParam() == Transport::mpi) {
      EXPECT_EQ(peer, nullptr);
    } else {
      ASSERT_NE(peer, nullptr);
      peer[static_cast<std::size_t>(rank_)] = static_cast<std::byte>(100 + rank_);
    }
  }
  world_.barrier("all stores");
  if (GetParam() == Transport::shm) {
    EXPECT_EQ(window->direct(Rank{rank_}), window->local().data());
    for (int r = 0; r < size_; ++r)
      EXPECT_EQ(window->local()[static_cast<std::size_t>(r)], static_cast<std::byte>(100 + r));
  }
  world_.barrier("all checks");
}

TEST_P(WindowTest, TraitsSayWhatTheBackendDoes) {
  const auto window = make_window(GetParam(), 4096);
  const bool plain = window->direct(Rank{(rank_ + 1) % size_}) != nullptr;
  // Who can store into a peer's memory can ring there, and needs nobody's help for it; what is put through the library
  // may need all of that.
  EXPECT_EQ(window->traits().can_ring, plain);
  EXPECT_EQ(window->traits().needs_progress, !plain);
  EXPECT_EQ(window->traits().survives_peer_loss, plain);
}

INSTANTIATE_TEST_SUITE_P(Backends, WindowTest, testing::Values(Transport::shm, Transport::mpi),
                         [](const auto& i) { return i.param == Transport::shm ? "shm" : "mpi"; });

TEST(Window, AutomaticIsSharedMemoryOnOneNode) {
  EXPECT_EQ(make_window(Transport::automatic, 4096)->transport(), Transport::shm);
}

TEST(Window, AnyMemoryModelButUnifiedIsRefusedWithAWayOut) {
  const int unified = MPI_WIN_UNIFIED, separate = MPI_WIN_SEPARATE;
  EXPECT_NO_THROW(check_memory_model(&unified));
  for (const int* model : {&separate, static_cast<const int*>(nullptr)}) {
    try {
      check_memory_model(model);
      FAIL() << "accepted";
    } catch (const MpiError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("expected MPI_WIN_UNIFIED"));
      EXPECT_THAT(e.what(), testing::HasSubstr("--mca osc"));
    }
  }
}

}  // namespace
}  // namespace hf
