#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi.hpp"
#include "comm_test_support.hpp"

namespace hf {
namespace {

using testing::HasSubstr;

TEST(Communicator, ReducesSumAndMaximum) {
  const Communicator world = Communicator::world();
  const int rank = world.rank(), size = world.size();
  std::vector<double> values = {1.0, static_cast<double>(rank), -static_cast<double>(rank)};
  world.all_reduce_sum(values.data(), values.size(), "sum");
  const double ranks = size * (size - 1) / 2.0;
  EXPECT_THAT(values, testing::ElementsAre(size, ranks, -ranks));
  values = {static_cast<double>(rank), -static_cast<double>(rank)};
  world.all_reduce_max(values.data(), values.size(), "max");
  EXPECT_THAT(values, testing::ElementsAre(size - 1, 0.0));
}

std::string text_of(int rank) {
  return rank == 0
             ? ""
             : std::string(static_cast<std::size_t>(rank * 3000), static_cast<char>('a' + rank)) + "\n\0x";
}

TEST(Communicator, GathersTextsOfAnyLength) {
  const Communicator world = Communicator::world();
  const auto texts = world.all_gather(text_of(world.rank()), "texts");
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(world.size()));
  for (int r = 0; r < world.size(); ++r) EXPECT_EQ(texts[static_cast<std::size_t>(r)], text_of(r)) << r;
}

std::vector<std::byte> bytes_of(int rank, std::uint64_t round) {
  // Some megabytes; the last rank has nothing.
  std::vector<std::byte> bytes(
      rank == 3 ? 0 : (std::size_t{3} << 20) * static_cast<std::size_t>(rank + 1) + 5 + round);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(rank) + round);
  return bytes;
}

TEST(Communicator, GathersManyBytesOnRankZero) {
  const Communicator world = Communicator::world();
  for (std::uint64_t round = 0; round < 2; ++round) {
    const auto parts = world.gather(bytes_of(world.rank(), round), "parts");
    if (world.rank() != 0) {
      EXPECT_TRUE(parts.empty());
      continue;
    }
    ASSERT_EQ(parts.size(), static_cast<std::size_t>(world.size()));
    for (int r = 0; r < world.size(); ++r)
      EXPECT_TRUE(parts[static_cast<std::size_t>(r)] == bytes_of(r, round)) << r;
  }
}

TEST(Communicator, SplitsAndMoves) {
  const Communicator world = Communicator::world();
  const bool member = world.rank() % 2 == 0;
  Communicator even = world.split(member, -world.rank());
  EXPECT_EQ(static_cast<bool>(even), member);
  if (member) {
    EXPECT_EQ(even.size(), (world.size() + 1) / 2);
    EXPECT_EQ(even.rank(), (world.size() - 1) / 2 - world.rank() / 2) << "by falling key";
    Communicator moved = std::move(even);
    EXPECT_FALSE(even);  // NOLINT(bugprone-use-after-move): the moved-from state is what is checked
    moved.barrier("the even ranks");
  }
  EXPECT_EQ(Communicator::split_node(MPI_COMM_WORLD).size(), world.size());
}

TEST(Communicator, BarrierEndsAtItsDeadlineAndSaysWhatItWaitedFor) {
  Communicator world = Communicator::world();
  if (world.size() == 1) GTEST_SKIP() << "nobody can be late";
  if (world.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    world.set_timeout(60);
    world.barrier("the others, who left at their deadline");
  } else {
    world.set_timeout(0.25);
    const auto start = std::chrono::steady_clock::now();
    try {
      world.barrier("the rank that sleeps");
      ADD_FAILURE() << "the barrier did not wait for rank 0";
    } catch (const MpiError& e) {
      EXPECT_THAT(e.what(), HasSubstr("waited 0.25 s for the rank that sleeps"));
      EXPECT_EQ(e.exit_code(), ExitCode::transport);
    }
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(250));
  }
  // Everybody has entered, so the barrier is over soon; leave it behind before the communicator goes.
  HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

TEST(Communicator, MpiErrorsAreExceptionsWithMpisText) {
  const Communicator world = Communicator::world();
  int value = 0;
  try {
    HF_MPI(MPI_Send(&value, 1, MPI_INT, world.size() + 5, 0, world.get()));
    FAIL() << "a send to no rank";
  } catch (const MpiError& e) {
    EXPECT_THAT(e.what(), HasSubstr("MPI_Send"));
    EXPECT_THAT(e.what(), HasSubstr("communicator_test.cpp"));
  }
}

TEST(Communicator, KnowsTheLibraryAndTheHost) {
  EXPECT_FALSE(mpi_library_version().empty());
  EXPECT_FALSE(host_name().empty());
}

}  // namespace
}  // namespace hf
