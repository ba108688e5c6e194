#include "io/batch_stage.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"

namespace hf {
namespace {

/// Batches of 8 rows, one more of them malformed each time: the vector of bad rows moves while it grows.
class Numbers final : public BatchStream {
 public:
  explicit Numbers(std::uint64_t count, std::uint64_t fail_at = ~std::uint64_t{0})
      : count_(count), fail_at_(fail_at) {}
  bool next(Batch& out) override {
    out.clear();
    if (at_ == fail_at_) throw DataError("batch " + std::to_string(at_));
    if (at_ == count_) return false;
    out.rows = 8;
    out.first_row = at_++;
    stats_.rows += 8;
    ++stats_.bad_rows;
    stats_.first_bad_rows.push_back({"a file whose name is not short", stats_.bad_rows, "a reason, as long"});
    if (stats_.first_bad_rows.size() > 10) stats_.first_bad_rows = {};
    return true;
  }
  StreamStats stats() const override { return stats_; }
  std::uint64_t total_rows_hint() const override { return 8 * count_; }

 private:
  std::uint64_t count_, fail_at_, at_ = 0;
  StreamStats stats_;
};

using Stage = BatchStage<std::uint64_t>;
void square(const Batch& batch, std::uint64_t& made) { made = batch.first_row * batch.first_row; }

TEST(BatchStage, HandsOverEachBatchWithWhatWasMadeOfIt) {
  for (const std::size_t depth : {1U, 2U, 100U}) {
    Stage stage(std::make_unique<Numbers>(200), depth, square);
    EXPECT_EQ(stage.total_rows_hint(), 1600U);
    for (std::uint64_t n = 0; n < 200; ++n) {
      auto item = stage.next();
      ASSERT_TRUE(item);
      EXPECT_EQ(item->data.first_row, n);
      EXPECT_EQ(item->made, n * n);
      EXPECT_EQ(stage.stats().bad_rows, n + 1) << "of what was handed out, not of what was read ahead";
      stage.recycle(std::move(item));
    }
    EXPECT_FALSE(stage.next());
    EXPECT_FALSE(stage.next());
    EXPECT_EQ(stage.stats().rows, 1600U);
  }
}

TEST(BatchStage, StatisticsMayBeReadWhileTheThreadReadsOn) {
  // train.max_steps: the consumer stops in the middle and looks. The thread sanitizer watches, and the address sanitizer.
  for (int repeat = 0; repeat < 20; ++repeat) {
    Stage stage(std::make_unique<Numbers>(100'000), 2, square);
    for (std::uint64_t n = 0; n < 100; ++n) {
      auto item = stage.next();
      const StreamStats stats = stage.stats();
      ASSERT_EQ(stats.bad_rows, n + 1);
      for (const BadRow& bad : stats.first_bad_rows) ASSERT_EQ(bad.reason, "a reason, as long");
      stage.recycle(std::move(item));
    }
  }
}

TEST(BatchStage, ErrorsComeAfterTheBatchesBefore) {
  Stage stage(std::make_unique<Numbers>(100, 5), 3, square);
  for (int n = 0; n < 5; ++n) ASSERT_TRUE(stage.next());
  EXPECT_THROW(stage.next(), DataError);
  EXPECT_THROW(stage.next(), DataError);
  EXPECT_EQ(stage.stats().bad_rows, 5U);
  Stage other(std::make_unique<Numbers>(100), 3, [](const Batch& batch, std::uint64_t&) {
    if (batch.first_row == 2) throw DataError("of make");
  });
  for (int n = 0; n < 2; ++n) ASSERT_TRUE(other.next());
  EXPECT_THROW(other.next(), DataError);
}

TEST(BatchStage, GoesAwayAtAnyTime) {
  for (int taken = 0; taken < 6; ++taken)
    for (int repeat = 0; repeat < 20; ++repeat) {
      Stage stage(std::make_unique<Numbers>(4), 2, square);
      for (int i = 0; i < taken; ++i) stage.next();
    }
}

}  // namespace
}  // namespace hf
