// ClockTable, IdMap, UniqueIds, GradientMerge and Memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "table/clock_table.hpp"
#include "table/gradient_merge.hpp"
#include "table/id_map.hpp"
#include "table/memory.hpp"
#include "table/table_bench.hpp"
#include "table/unique.hpp"

namespace hf {
namespace {

TEST(ClockTable, theGateOpensWithTheSlowestWorker) {
  ClockTable clocks(3, 2);
  EXPECT_TRUE(clocks.may_read(0) && clocks.may_read(1) && clocks.may_read(2));
  EXPECT_FALSE(clocks.may_read(3));
  clocks.advance(WorkerId(0), 5);
  clocks.advance(WorkerId(1), 5);
  EXPECT_EQ(clocks.slowest(), 0U);
  EXPECT_FALSE(clocks.may_read(3));
  clocks.advance(WorkerId(2), 1);
  EXPECT_TRUE(clocks.may_read(3));
  EXPECT_FALSE(clocks.may_read(4));
  clocks.advance(WorkerId(2), 9);
  EXPECT_EQ(clocks.slowest(), 5U);
  clocks.advance(WorkerId(2), 4);  // an old report
  EXPECT_EQ(clocks.clock(WorkerId(2)), 9U);
}

TEST(ClockTable, boundsOfZeroAndInfinity) {
  ClockTable synchronous(2, 0);
  EXPECT_TRUE(synchronous.may_read(0));
  synchronous.advance(WorkerId(0), 1);
  EXPECT_FALSE(synchronous.may_read(1));
  synchronous.advance(WorkerId(1), 1);
  EXPECT_TRUE(synchronous.may_read(1));
  const ClockTable never_waits(2, kStalenessInfinite);
  EXPECT_TRUE(never_waits.may_read(1'000'000'000));
  const ClockTable huge(2, kStalenessInfinite - 1);
  EXPECT_TRUE(huge.may_read(kStalenessInfinite - 1));
}

TEST(ClockTable, aWorkerWithoutDataHoldsNobodyBack) {
  ClockTable clocks(2, 1);
  clocks.advance(WorkerId(0), 7);
  EXPECT_FALSE(clocks.may_read(7));
  clocks.set(WorkerId(1), kClockInfinite);
  EXPECT_TRUE(clocks.may_read(8));
  EXPECT_FALSE(clocks.may_read(9));
  clocks.advance(WorkerId(1), 3);  // a late report does not wake it
  EXPECT_EQ(clocks.slowest(), 7U);
  clocks.set(WorkerId(0), kClockInfinite);
  EXPECT_EQ(clocks.slowest(), kClockInfinite);
  EXPECT_TRUE(clocks.may_read(1'000'000));
  clocks.record_read(50);
  EXPECT_EQ(clocks.max_observed_lag(), 0U);
  clocks.set(WorkerId(1), 3);
  EXPECT_EQ(clocks.slowest(), 3U);
  clocks.record_read(4);
  EXPECT_EQ(clocks.max_observed_lag(), 1U);
}

TEST(ClockTable, observedLagNeverPassesTheBoundOfTheGate) {
  for (const std::uint64_t bound : {0ULL, 1ULL, 4ULL}) {
    ClockTable clocks(4, bound);
    std::vector<Step> at(4, 0);
    SplitMix64 random(bound);
    std::uint64_t waits = 0;
    for (int i = 0; i < 20'000; ++i) {
      const auto w = static_cast<std::uint32_t>(random() % 8 < 5 ? random() % 3 : 3);
      if (w == 3 && random() % 4 != 0) continue;  // one slow worker
      if (!clocks.may_read(at[w])) {
        ++waits;
        continue;
      }
      clocks.record_read(at[w]);
      clocks.advance(WorkerId(w), ++at[w]);
      ASSERT_EQ(clocks.slowest(), *std::min_element(at.begin(), at.end()));
    }
    EXPECT_EQ(clocks.max_observed_lag(), bound);
    EXPECT_GT(waits, 0U);
  }
  ClockTable free(2, kStalenessInfinite);
  free.record_read(10);
  free.record_read(3);
  EXPECT_EQ(free.max_observed_lag(), 10U);
  EXPECT_THROW(ClockTable(0, 1), CheckFailed);
  EXPECT_THROW(free.advance(WorkerId(2), 1), CheckFailed);
}

TEST(UniqueIds, firstSeenOrderAndInverse) {
  UniqueIds unique_ids;
  std::vector<RowId> unique;
  std::vector<std::uint32_t> inverse;
  SplitMix64 random(1);
  for (const std::size_t n : {0UL, 1UL, 7UL, 5000UL, 40UL, 60'000UL, 0UL, 3000UL})
    for (const std::uint64_t range : {1ULL, 10ULL, 2000ULL, 1ULL << 60}) {
      std::vector<RowId> ids(n);
      for (auto& id : ids) id = (random() % range) * 64;
      unique_ids.build(ids, unique, inverse);
      std::map<RowId, std::uint32_t> expected;
      std::vector<RowId> order;
      ASSERT_EQ(inverse.size(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const auto [at, fresh] = expected.try_emplace(ids[i], static_cast<std::uint32_t>(order.size()));
        if (fresh) order.push_back(ids[i]);
        ASSERT_EQ(inverse[i], at->second);
      }
      ASSERT_EQ(unique, order);
    }
}

TEST(GradientMerge, sumsRowsInTheOrderOfTheCalls) {
  GradientMerge merge(2);
  for (int round = 0; round < 3; ++round) {
    const std::vector<RowId> a = {5, 9, 5}, b = {1, 9};
    const std::vector<float> ga = {1, 2, 3, 4, 5, 6}, gb = {0.5F, 0.25F, 1e-9F, 10};
    merge.add(a, ga.data());
    merge.add(b, gb.data());
    EXPECT_EQ(std::vector<RowId>(merge.ids().begin(), merge.ids().end()), (std::vector<RowId>{5, 9, 1}));
    EXPECT_EQ(std::vector<float>(merge.grads(), merge.grads() + 6),
              (std::vector<float>{6, 8, 3, 14, 0.5F, 0.25F}));
    merge.clear();
    EXPECT_TRUE(merge.ids().empty());
  }
}

TEST(GradientMerge, manyRows) {
  constexpr std::uint32_t kDim = 3;
  GradientMerge merge(kDim);
  std::map<RowId, std::vector<float>> expected;
  SplitMix64 random(4);
  for (int push = 0; push < 4; ++push) {
    std::vector<RowId> ids(3000);
    std::vector<float> grads(ids.size() * kDim);
    for (auto& id : ids) id = random() % 5000;
    for (auto& g : grads) g = uniform_float(random());
    merge.add(ids, grads.data());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto& sum = expected.try_emplace(ids[i], std::vector<float>(kDim, 0.0F)).first->second;
      for (std::uint32_t j = 0; j < kDim; ++j) sum[j] += grads[i * kDim + j];
    }
  }
  ASSERT_EQ(merge.ids().size(), expected.size());
  for (std::size_t i = 0; i < merge.ids().size(); ++i)
    for (std::uint32_t j = 0; j < kDim; ++j)
      ASSERT_EQ(merge.grads()[i * kDim + j], expected.at(merge.ids()[i])[j]);
}

TEST(Memory, isZeroedAndAligned) {
  for (const std::size_t bytes : {1UL, 640UL, 100'000UL, 300'000UL, (2UL << 20) + 4096}) {
    Memory memory(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.bytes()) % (bytes >= (2UL << 20) ? 2UL << 20 : 64), 0U);
    EXPECT_GE(memory.reserved_bytes(), bytes);
    EXPECT_LT(memory.reserved_bytes(), bytes + 4096);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(memory.bytes()[i], std::byte{0});
    std::fill_n(memory.bytes(), bytes, std::byte{1});
    const std::byte* where = memory.bytes();
    Memory other(std::move(memory));
    EXPECT_EQ(other.bytes(), where);
    memory = std::move(other);
    EXPECT_EQ(memory.bytes(), where);
  }
  EXPECT_EQ(Memory(0).bytes(), nullptr);
}

TEST(Arena, piecesDoNotOverlapAndLittleIsWasted) {
  Arena arena;
  std::size_t used = 0;
  std::vector<std::pair<float*, std::size_t>> pieces;
  for (std::size_t i = 0; i < 3000; ++i) {
    const std::size_t bytes = 64 + (i * 52) % 4000 / 4 * 4;
    pieces.emplace_back(arena.allocate(bytes), bytes / 4);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pieces.back().first) % 64, 0U);
    std::fill_n(pieces.back().first, bytes / 4, static_cast<float>(i));
    used += bytes;
  }
  for (std::size_t i = 0; i < pieces.size(); ++i)
    for (std::size_t j = 0; j < pieces[i].second; ++j) ASSERT_EQ(pieces[i].first[j], static_cast<float>(i));
  EXPECT_LT(static_cast<double>(arena.reserved_bytes()), 1.15 * static_cast<double>(used));
}

TEST(TableBench, bothSidesDoTheSameWork) {
  for (const std::uint32_t dim : {16U, 5U}) {
    const GatherApplyResult r = bench_gather_apply(20'000, dim, 1000, 5);
    EXPECT_GT(r.bare_ns_per_row, 0.0);
    EXPECT_GT(r.table_ns_per_row, 0.0);
    EXPECT_GT(r.ratio, 0.0);
    GatherApplyWorkload work(20'000, dim, 1000, 2);
    EXPECT_TRUE(work.sides_equal());
    work.run_bare(1);
    EXPECT_FALSE(work.sides_equal());
    work.run_table(1);
    EXPECT_TRUE(work.sides_equal());
  }
}

}  // namespace
}  // namespace hf
