#include "io/prefetch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "core/error.hpp"

namespace hf {
namespace {

/// Batches of 8 rows numbered from 0; throws instead of batch `fail_at`.
class Numbers final : public BatchStream {
 public:
  struct Shared {
    std::atomic<int> calls{0};
    std::atomic<bool> destroyed{false};
    std::set<const void*> memory;  ///< of the batches handed in; read after the stream is gone
  };
  Numbers(int count, Shared& shared, int fail_at = -1) : count_(count), fail_at_(fail_at), shared_(shared) {}
  ~Numbers() override { shared_.destroyed = true; }

  bool next(Batch& out) override {
    out.clear();
    const int n = shared_.calls++;
    if (n == fail_at_) {
      ++stats_.bad_rows;
      throw DataError("batch " + std::to_string(n));
    }
    if (n >= count_) return false;
    out.rows = 8;
    out.first_row = static_cast<std::uint64_t>(n);
    out.labels.assign(8, static_cast<float>(n));
    shared_.memory.insert(out.labels.data());
    stats_.rows += 8;
    return true;
  }
  StreamStats stats() const override { return stats_; }
  std::uint64_t total_rows_hint() const override { return 77; }

 private:
  int count_, fail_at_;
  Shared& shared_;
  StreamStats stats_;
};

TEST(Prefetch, SameBatchesInOrder) {
  for (const std::size_t depth : {0u, 1u, 2u, 5u, 100u}) {
    Numbers::Shared shared;
    auto stream = prefetch(std::make_unique<Numbers>(50, shared), depth);
    EXPECT_EQ(stream->total_rows_hint(), 77u);
    Batch batch;
    for (std::uint64_t n = 0; n < 50; ++n) {
      ASSERT_TRUE(stream->next(batch));
      EXPECT_EQ(batch.first_row, n);
      EXPECT_EQ(batch.labels, std::vector<float>(8, static_cast<float>(n)));
      EXPECT_EQ(stream->stats().rows, 8 * (n + 1)) << "of what was handed out, not of what was read ahead";
    }
    for (int again = 0; again < 3; ++again) {
      EXPECT_FALSE(stream->next(batch));
      EXPECT_EQ(batch.rows, 0u);
    }
    EXPECT_EQ(stream->stats().rows, 400u);
  }
}

TEST(Prefetch, ReadsAheadAsFarAsTheDepth) {
  Numbers::Shared shared;
  auto stream = prefetch(std::make_unique<Numbers>(1000, shared), 3);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (shared.calls < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(shared.calls, 3);
}

TEST(Prefetch, MemoryGoesRound) {
  Numbers::Shared shared;
  {
    auto stream = prefetch(std::make_unique<Numbers>(1000, shared), 3);
    Batch batch;
    while (stream->next(batch)) {
    }
  }
  EXPECT_LE(shared.memory.size(), 6u) << "queue, thread, consumer, spare";
}

TEST(Prefetch, ErrorsCrossAfterTheBatchesBefore) {
  Numbers::Shared shared;
  auto stream = prefetch(std::make_unique<Numbers>(50, shared, 5), 3);
  Batch batch;
  for (int n = 0; n < 5; ++n) ASSERT_TRUE(stream->next(batch));
  EXPECT_EQ(stream->stats().bad_rows, 0u);
  for (int again = 0; again < 2; ++again) {
    try {
      stream->next(batch);
      FAIL() << "no error";
    } catch (const DataError& e) {
      EXPECT_STREQ(e.what(), "batch 5");
    }
    EXPECT_EQ(stream->stats().bad_rows, 1u);
  }
}

TEST(Prefetch, GoesAwayAtAnyTime) {
  for (int taken = 0; taken < 12; ++taken)
    for (int repeat = 0; repeat < 20; ++repeat) {
      Numbers::Shared shared;
      {
        auto stream = prefetch(std::make_unique<Numbers>(10, shared, repeat % 2 == 0 ? 8 : -1), 2);
        Batch batch;
        try {
          for (int n = 0; n < taken; ++n) stream->next(batch);
        } catch (const DataError&) {
          EXPECT_GE(taken, 9);
        }
      }
      EXPECT_TRUE(shared.destroyed);
    }
}

}  // namespace
}  // namespace hf
