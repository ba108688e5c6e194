#include "routing/row_hash.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"

namespace hf {
namespace {

double max_over_mean(const std::vector<std::uint32_t>& counts) {
  std::uint64_t sum = 0;
  for (const auto c : counts) sum += c;
  return static_cast<double>(*std::max_element(counts.begin(), counts.end())) *
         static_cast<double>(counts.size()) / static_cast<double>(sum);
}

TEST(RowHash, staticPositionsAreABijection) {
  for (const std::uint32_t shards : {1U, 2U, 7U, 64U, 100U, 1000U, 1024U})
    for (const std::uint64_t rows : {0ULL, 1ULL, 5ULL, 64ULL, 999ULL, 1000ULL, 4096ULL, 50'001ULL}) {
      const RowHash hash(TableKind::static_rows, rows, shards);
      std::uint64_t total = 0, smallest = rows + 1, largest = 0;
      for (std::uint32_t s = 0; s < shards; ++s) {
        const std::uint64_t n = hash.shard_rows(ShardId(s));
        total += n;
        smallest = std::min(smallest, n);
        largest = std::max(largest, n);
        RowId before = 0;
        for (std::uint64_t i = 0; i < n; ++i) {
          const RowId id = hash.id_at(ShardId(s), i);
          ASSERT_LT(id, rows);
          ASSERT_TRUE(i == 0 || id > before) << "ascending";
          before = id;
          const auto position = hash.position(id);
          ASSERT_EQ(position.shard, ShardId(s)) << rows << " rows, " << shards << " shards, id " << id;
          ASSERT_EQ(position.index, i);
          ASSERT_EQ(hash.shard(id), ShardId(s));
        }
      }
      ASSERT_EQ(total, rows);  // with the inverse above: every id has exactly one place
      ASSERT_LE(largest - smallest, 1U);
    }
}

TEST(RowHash, hugeTables) {
  for (const std::uint32_t shards : {64U, 100U}) {
    const std::uint64_t rows = (1ULL << 40) + 12'345;
    const RowHash hash(TableKind::static_rows, rows, shards);
    EXPECT_FALSE(hash.vectorises());
    for (RowId id = 0; id < rows; id += rows / 1000 + 1) {
      const auto p = hash.position(id);
      ASSERT_LT(p.index, hash.shard_rows(p.shard));
      ASSERT_EQ(hash.id_at(p.shard, p.index), id);
    }
  }
  const RowHash edge(TableKind::static_rows, ~0ULL, 1000);  // quotients where the reciprocal is one too small
  for (const RowId id : {~0ULL - 1, 1'000'000'000'000'000'000ULL, 18'446'744'073'709'551'000ULL,
                         17'999'999'999'999'999'999ULL})
    EXPECT_EQ(edge.position(id).index, id / 1000);
}

TEST(RowHash, vectorLoopEqualsTheScalarOne) {
  for (const std::uint32_t shards : {1U, 2U, 64U, 1024U})
    for (const std::uint64_t rows : {100ULL, 1ULL << 20, 1ULL << 32}) {
      const RowHash hash(TableKind::static_rows, rows, shards);
      ASSERT_TRUE(hash.vectorises());
      std::vector<RowId> ids;
      for (std::uint64_t i = 0; i < 100; ++i) ids.push_back(mix64(i) % rows);
      ids.push_back(rows - 1);
      std::vector<std::uint32_t> shard(ids.size()), index(ids.size());
      hash.positions32(ids.data(), ids.size(), shard.data(), index.data());
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto p = hash.position(ids[i]);
        ASSERT_EQ(p.shard.value, shard[i]);
        ASSERT_EQ(p.index, index[i]);
      }
    }
  EXPECT_FALSE(RowHash(TableKind::static_rows, 1000, 100).vectorises());
}

TEST(RowHash, stridedIdsSpreadOverShards) {
  constexpr std::uint64_t kIds = 20'000;
  for (const TableKind kind : {TableKind::static_rows, TableKind::dynamic})
    for (const std::uint32_t shards : {64U, 60U})
      for (const std::uint64_t stride :
           {1ULL, 2ULL, 3ULL, 10ULL, 60ULL, 64ULL, 100ULL, 128ULL, 987ULL, 1000ULL, 1024ULL, 4096ULL,
            10'946ULL, 65'536ULL, 1'000'000ULL, 1ULL << 26, 1ULL << 32, (1ULL << 40) - 1}) {
        const RowHash hash(kind, kIds * stride, shards);
        std::vector<std::uint32_t> counts(shards, 0);
        for (std::uint64_t i = 0; i < kIds; ++i) ++counts[hash.shard(i * stride).value];
        EXPECT_LE(max_over_mean(counts), 1.3)
            << to_string(kind) << " stride " << stride << " shards " << shards;
      }
}

TEST(RowHash, rowsOfSmallTablesDoNotMeetOnTheSameShards) {
  std::vector<std::uint32_t> counts(64, 0);
  for (std::uint64_t rows = 10; rows < 1010; ++rows) {  // the first 8 rows of 1000 tables
    const RowHash hash(TableKind::static_rows, rows, 64);
    for (RowId id = 0; id < 8; ++id) ++counts[hash.shard(id).value];
  }
  EXPECT_LE(max_over_mean(counts), 1.5);
}

TEST(RowHash, dynamicShardOfAMixedId) {
  const RowHash hash(TableKind::dynamic, 0, 100);
  for (RowId id = 0; id < 1000; ++id) {
    EXPECT_LT(hash.shard(id).value, 100U);
    EXPECT_EQ(hash.shard(id), hash.dynamic_shard(mix64(id)));
  }
  EXPECT_THROW(RowHash(TableKind::dynamic, 0, 0), CheckFailed);
}

TEST(RowHash, isFixedForEver) {
  // Checkpoints name shards: a change of the function makes them unreadable.
  const RowHash hash(TableKind::static_rows, 1'000'000, 64);
  std::uint64_t sum = 0;
  for (RowId id = 0; id < 1'000'000; id += 997) sum = mix64(sum, hash.shard(id).value);
  const RowHash dynamic(TableKind::dynamic, 0, 64);
  for (RowId id = 0; id < 1'000'000; id += 997) sum = mix64(sum, dynamic.shard(id).value);
  EXPECT_EQ(sum, 17532733650533764102ULL);
}

}  // namespace
}  // namespace hf
