#include "table/table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/random.hpp"
#include "table/optimizer.hpp"

namespace hf {
namespace {

using testing::HasSubstr;

std::vector<ShardId> shards_upto(std::uint32_t n) {
  std::vector<ShardId> shards;
  for (std::uint32_t s = 0; s < n; ++s) shards.emplace_back(s);
  return shards;
}

TableSpec make_spec(TableKind kind, std::uint64_t rows, std::uint32_t dim,
                    OptimizerKind optimizer = OptimizerKind::sgd) {
  TableSpec spec;
  spec.name = "user";
  spec.kind = kind;
  spec.rows = kind == TableKind::static_rows ? rows : 0;
  spec.dim = dim;
  spec.optimizer.kind = optimizer;
  return spec;
}

constexpr OptimizerKind kOptimizers[] = {OptimizerKind::sgd, OptimizerKind::adagrad,
                                         OptimizerKind::rowwise_adagrad, OptimizerKind::adam,
                                         OptimizerKind::ftrl};
constexpr TableKind kKinds[] = {TableKind::static_rows, TableKind::dynamic};

// What a table must hold: rows by id, each updated by the reference.
struct Model {
  explicit Model(const TableSpec& s) : spec(s), floats(s.dim + optimizer_slots(s.optimizer.kind, s.dim)) {}
  std::vector<float>& row(RowId id) {
    const auto [at, fresh] = rows.try_emplace(id, floats);
    if (fresh) {
      initial_row(spec, id, at->second.data());
      init_optimizer_state(spec.optimizer, spec.dim, ApplyArgs{.learning_rate = spec.optimizer.learning_rate},
                           at->second.data());
    }
    return at->second;
  }
  TableSpec spec;
  std::size_t floats;
  std::map<RowId, std::vector<float>> rows;
};

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST(Table, everyOptimizerAndDimEqualsTheReferenceBitForBit) {
  for (const TableKind kind : kKinds)
    for (const OptimizerKind optimizer : kOptimizers)
      for (const std::uint32_t dim : {1U, 3U, 4U, 8U, 13U, 16U, 17U, 32U, 33U, 64U, 100U, 128U}) {
        TableSpec spec = make_spec(kind, 300, dim, optimizer);
        spec.optimizer.weight_decay = 0.01F;
        spec.optimizer.l1 = 0.001F;
        spec.optimizer.l2 = 0.1F;
        spec.optimizer.initial_accumulator = 0.1F;
        spec.init.scale = 0.5F;
        Table table(spec, 7, shards_upto(7));
        Model model(spec);
        ASSERT_EQ(table.record_floats(), model.floats);
        SplitMix64 random(dim);
        for (Step step = 1; step <= 4; ++step) {
          const std::size_t n = step == 3 ? 5 : 200;
          std::vector<RowId> ids(300);
          std::iota(ids.begin(), ids.end(), 0);
          std::shuffle(ids.begin(), ids.end(), random);
          ids.resize(n);
          if (kind == TableKind::dynamic)
            for (auto& id : ids) id = mix64(id);
          ids.push_back(ids.front());  // a duplicate is a step of its own
          std::vector<float> grads(ids.size() * dim);
          for (float& g : grads) g = 4.0F * uniform_float(random()) - 2.0F;
          const ApplyArgs args{
              .learning_rate = 0.1F / static_cast<float>(step), .grad_scale = 0.25F, .step = step};
          table.apply(ids, grads.data(), args);
          for (std::size_t i = 0; i < ids.size(); ++i)
            apply_row(spec.optimizer, dim, args, grads.data() + i * dim, model.row(ids[i]).data());
        }
        std::size_t seen = 0;
        for (const ShardId s : table.shards())
          table.for_each_row(s, [&](RowId id, std::span<const float> record) {
            ASSERT_TRUE(same_bits(record, model.row(id)))
                << to_string(kind) << " " << to_string(optimizer) << " dim " << dim << " id " << id;
            ++seen;
          });
        ASSERT_EQ(seen, table.rows());
        ASSERT_EQ(seen, model.rows.size());
        std::vector<RowId> ids;
        for (const auto& [id, record] : model.rows) ids.push_back(id);
        std::vector<float> out(ids.size() * dim);
        table.gather(ids, out.data(), false);
        for (std::size_t i = 0; i < ids.size(); ++i)
          ASSERT_TRUE(same_bits({out.data() + i * dim, dim}, std::span(model.row(ids[i])).first(dim)));
      }
}

TEST(Table, gatherOfEverySizeTouchesExactlyItsRows) {
  for (const TableKind kind : kKinds) {
    Table table(make_spec(kind, 1000, 5), 8, shards_upto(8));
    for (std::size_t n = 0; n <= 200; ++n) {
      std::vector<RowId> ids(n);
      for (std::size_t i = 0; i < n; ++i) ids[i] = (i * 37) % 1000;
      std::vector<float> out(n * 5 + 1, 77.0F);
      table.gather(ids, out.data(), n % 2 == 0);
      ASSERT_EQ(out.back(), 77.0F);
      for (std::size_t i = 0; i < n; ++i) {
        float expected[5];
        initial_row(table.spec(), ids[i], expected);
        ASSERT_TRUE(same_bits({out.data() + i * 5, 5}, expected)) << n << " " << i;
      }
    }
  }
}

TEST(Table, dynamicRowsAreCreatedWhenAdmittedOnly) {
  Table table(make_spec(TableKind::dynamic, 0, 4), 16, shards_upto(16));
  const std::vector<RowId> ids = {0, ~0ULL, 17, 1ULL << 63};
  std::vector<float> a(16), b(16);
  table.gather(ids, a.data(), false);
  EXPECT_EQ(table.rows(), 0U);
  table.gather(ids, b.data(), true);
  EXPECT_EQ(table.rows(), 4U);
  EXPECT_EQ(a, b);
  const std::vector<RowId> some = {0, 5, 17};
  const std::vector<float> grads(12, 1.0F);
  table.apply(some, grads.data(), {});
  EXPECT_EQ(table.rows(), 5U);
}

TEST(Table, dynamicGrowthKeepsAddressesAndOrder) {
  Table table(make_spec(TableKind::dynamic, 0, 3, OptimizerKind::adagrad), 4, shards_upto(4));
  constexpr std::uint64_t kRows = 50'000;
  std::vector<RowId> ids(kRows);
  for (std::uint64_t i = 0; i < kRows; ++i) ids[i] = i * 1'000'003;
  std::vector<float> out(kRows * 3);
  table.gather(std::span(ids).first(100), out.data(), true);
  std::map<RowId, const float*> address;
  for (const ShardId s : table.shards())
    table.for_each_row(s, [&](RowId id, std::span<const float> r) { address[id] = r.data(); });
  ASSERT_EQ(address.size(), 100U);
  table.gather(ids, out.data(), true);
  EXPECT_EQ(table.rows(), kRows);
  std::uint64_t seen = 0;
  for (const ShardId s : table.shards()) {
    RowId before = 0;
    table.for_each_row(s, [&](RowId id, std::span<const float> r) {
      if (const auto at = address.find(id); at != address.end()) {
        ASSERT_EQ(at->second, r.data());
      }
      ASSERT_TRUE(seen == 0 || before <= id) << "creation order";
      before = id;
      ++seen;
    });
  }
  EXPECT_EQ(seen, kRows);
}

TEST(Table, ownsItsShardsOnly) {
  for (const TableKind kind : kKinds) {
    const TableSpec spec = make_spec(kind, 10'000, 8);
    const RowHash hash(kind, spec.rows, 32);
    const std::vector<ShardId> mine = {ShardId(30), ShardId(3), ShardId(17)};
    Table table(spec, 32, mine);
    std::vector<RowId> ids;
    for (RowId id = 0; id < 10'000; ++id)
      if (std::find(mine.begin(), mine.end(), hash.shard(id)) != mine.end()) ids.push_back(id);
    std::vector<float> out(ids.size() * 8), all(ids.size() * 8);
    table.gather(ids, out.data(), true);
    EXPECT_EQ(table.rows(), ids.size());
    Table whole(spec, 32, shards_upto(32));
    whole.gather(ids, all.data(), true);
    EXPECT_EQ(out, all) << "the same on any number of servers";
    RowId foreign = 0;
    while (std::find(mine.begin(), mine.end(), hash.shard(foreign)) != mine.end()) ++foreign;
    EXPECT_THROW(table.gather(std::span(&foreign, 1), out.data(), true), CheckFailed);
    EXPECT_THROW(table.for_each_row(ShardId(4), [](RowId, std::span<const float>) {}), CheckFailed);
    EXPECT_THROW(Table(spec, 32, std::vector<ShardId>{ShardId(1), ShardId(1)}), CheckFailed);
    EXPECT_THROW(Table(spec, 32, std::vector<ShardId>{ShardId(32)}), CheckFailed);
  }
}

TEST(Table, anIdOutOfRangeIsAnErrorThatNamesTableAndId) {
  Table table(make_spec(TableKind::static_rows, 1000, 2), 64, shards_upto(64));
  std::vector<float> before(2000), after(2000);
  std::vector<RowId> all(1000);
  std::iota(all.begin(), all.end(), 0);
  table.gather(all, before.data(), true);
  for (const RowId bad : {RowId{1000}, RowId{1} << 32, RowId{1} << 63, ~RowId{0}}) {
    std::vector<RowId> ids(all.begin(), all.begin() + 100);
    ids[70] = bad;
    const std::vector<float> grads(200, 1.0F);
    std::vector<float> out(200);
    for (const bool gather : {true, false}) try {
        if (gather)
          table.gather(ids, out.data(), true);
        else
          table.apply(ids, grads.data(), {});
        FAIL() << bad;
      } catch (const DataError& e) {
        EXPECT_THAT(e.what(), HasSubstr("\"user\""));
        EXPECT_THAT(e.what(), HasSubstr("found " + std::to_string(bad)));
      }
  }
  table.gather(all, after.data(), true);
  EXPECT_EQ(before, after) << "nothing applied of a refused call";
  Table empty(make_spec(TableKind::static_rows, 0, 2), 64, shards_upto(64));
  EXPECT_EQ(empty.rows(), 0U);
  EXPECT_THROW(empty.gather(std::span(all).first(1), after.data(), true), DataError);
  EXPECT_NO_THROW(empty.gather({}, nullptr, true));
}

TEST(Table, restoreBringsBackWhatForEachRowGave) {
  for (const TableKind kind : kKinds) {
    const TableSpec spec = make_spec(kind, 500, 6, OptimizerKind::adam);
    Table a(spec, 8, shards_upto(8));
    std::vector<RowId> ids(500);
    std::iota(ids.begin(), ids.end(), 0);
    std::vector<float> grads(3000);
    SplitMix64 random(1);
    for (float& g : grads) g = uniform_float(random());
    a.apply(ids, grads.data(), {.learning_rate = 0.1F, .step = 3});
    std::vector<RowId> saved_ids;
    std::vector<float> saved;
    for (const ShardId s : a.shards())
      a.for_each_row(s, [&](RowId id, std::span<const float> r) {
        saved_ids.push_back(id);
        saved.insert(saved.end(), r.begin(), r.end());
      });
    Table b(spec, 8, shards_upto(8));
    b.restore(saved_ids, saved.data());
    std::vector<float> again;
    for (const ShardId s : b.shards())
      b.for_each_row(s,
                     [&](RowId, std::span<const float> r) { again.insert(again.end(), r.begin(), r.end()); });
    EXPECT_EQ(saved, again);
    EXPECT_EQ(b.rows(), 500U);
  }
}

TEST(Table, memoryBounds) {
  for (const std::uint64_t rows : {10'000ULL, 100'000ULL, 1'000'000ULL}) {
    for (const OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adagrad}) {
      const Table fixed(make_spec(TableKind::static_rows, rows, 16, optimizer), 64, shards_upto(64));
      const double bytes = static_cast<double>(rows) * fixed.record_floats() * 4;
      EXPECT_LE(static_cast<double>(fixed.memory_bytes()), 1.02 * bytes) << rows;
      EXPECT_GE(static_cast<double>(fixed.memory_bytes()), bytes);
    }
    // The worst moment of growth counts, not the last one.
    Table table(make_spec(TableKind::dynamic, 0, 16), 64, shards_upto(64));
    std::vector<RowId> ids(1000);
    std::vector<float> out(16'000);
    double worst = 0.0;
    for (std::uint64_t i = 0; i < rows; i += ids.size()) {
      for (std::uint64_t j = 0; j < ids.size(); ++j) ids[j] = mix64(i + j);
      table.gather(ids, out.data(), true);
      if (table.rows() >= 10'000)
        worst = std::max(
            worst, static_cast<double>(table.memory_bytes()) / (static_cast<double>(table.rows()) * 64));
    }
    EXPECT_EQ(table.rows(), rows);
    EXPECT_LE(worst, 1.5) << rows;
    EXPECT_GE(worst, 1.0);
    std::printf("dynamic table of %llu rows: at most %.3f times its row bytes\n",
                static_cast<unsigned long long>(rows), worst);
  }
}

TEST(Table, smallTablesStaySmall) {
  std::uint64_t bytes = 0;
  for (std::uint64_t t = 0; t < 26; ++t)
    bytes += Table(make_spec(TableKind::static_rows, 10 + t * 40, 16), 64, shards_upto(64)).memory_bytes();
  EXPECT_LE(bytes, 26 * (510 * 64 + 4096));
}

TEST(Table, moves) {
  Table a(make_spec(TableKind::static_rows, 100, 2), 4, shards_upto(4));
  Table b(std::move(a));
  a = Table(make_spec(TableKind::dynamic, 0, 2), 4, shards_upto(4));
  EXPECT_EQ(b.rows(), 100U);
  EXPECT_EQ(a.rows(), 0U);
}

// ------------------------------------------------------------------------------------------ initial values

TEST(InitialRow, isAFunctionOfSeedNameIdAndColumn) {
  const TableSpec spec = make_spec(TableKind::static_rows, 10, 8);
  const auto row = [](const TableSpec& s, RowId id) {
    std::vector<float> r(s.dim);
    initial_row(s, id, r.data());
    return r;
  };
  TableSpec other_seed = spec, other_name = spec, wider = spec;
  other_seed.init.seed = 43;
  other_name.name = "item";
  wider.dim = 11;
  EXPECT_EQ(row(spec, 3), row(spec, 3));
  EXPECT_NE(row(spec, 3), row(spec, 4));
  EXPECT_NE(row(spec, 3), row(other_seed, 3));
  EXPECT_NE(row(spec, 3), row(other_name, 3));
  const auto wide = row(wider, 3);
  EXPECT_EQ(row(spec, 3), std::vector<float>(wide.begin(), wide.begin() + 8))
      << "columns do not depend on dim";
}

TEST(InitialRow, distributionsAndTail) {
  for (const InitKind kind : {InitKind::zeros, InitKind::uniform, InitKind::normal}) {
    TableSpec spec = make_spec(TableKind::static_rows, 1, 17);
    spec.init = {.kind = kind, .scale = 0.3F, .zero_tail = 2, .seed = 9};
    double sum = 0, squares = 0, neighbours = 0, largest = 0;
    constexpr int kRows = 20'000;
    for (RowId id = 0; id < kRows; ++id) {
      float r[17];
      initial_row(spec, id, r);
      ASSERT_EQ(r[15], 0.0F);
      ASSERT_EQ(r[16], 0.0F);
      for (int j = 0; j < 15; ++j) {
        ASSERT_TRUE(std::isfinite(r[j]));
        if (kind == InitKind::uniform) {
          ASSERT_TRUE(r[j] >= -0.3F && r[j] < 0.3F);
        }
        sum += r[j];
        squares += r[j] * r[j];
        largest = std::max(largest, std::abs(static_cast<double>(r[j])));
        if (j > 0) neighbours += r[j] * r[j - 1];
      }
    }
    const double n = kRows * 15.0;
    const double variance = kind == InitKind::zeros ? 0.0 : kind == InitKind::normal ? 0.09 : 0.03;
    EXPECT_NEAR(sum / n, 0.0, 0.003);
    EXPECT_NEAR(squares / n, variance, 0.02 * variance);
    EXPECT_NEAR(neighbours / n, 0.0, 0.02 * variance + 1e-12);
    if (kind == InitKind::normal) {
      EXPECT_GT(largest, 3.5 * 0.3);
    }
  }
  TableSpec all_tail = make_spec(TableKind::static_rows, 1, 3);
  all_tail.init.zero_tail = 5;
  float r[3] = {1, 1, 1};
  initial_row(all_tail, 0, r);
  EXPECT_THAT(r, testing::Each(0.0F));
}

TEST(InitialRow, isFixedForEver) {
  // Rows that no run has touched are not in checkpoints: a change of the function changes them.
  TableSpec spec = make_spec(TableKind::static_rows, 1, 4);
  float r[4];
  initial_row(spec, 12345, r);
  EXPECT_THAT(r, testing::ElementsAre(-0.00973838381F, -0.000780345174F, -0.00294238213F, -0.00227291696F));
}

}  // namespace
}  // namespace hf
