#include "io/encoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::uint64_t xxh64(const std::string& text, std::uint64_t seed) {
  return XXH64(text.data(), text.size(), seed);
}

/// Encodes single rows of one config; texts are given by feature.
class Bench {
 public:
  explicit Bench(Config config, const Statistics& statistics = {})
      : config_(std::move(config)), schema_(schema_of(config_)), encoder_(config_, schema_, statistics) {
    encoder_.prepare(batch);
  }
  bool add(std::vector<std::string_view> numeric, std::vector<std::string_view> categorical,
           std::optional<float> label = 1.0F) {
    RawRow row;
    row.label = label;
    row.numeric = std::move(numeric);
    for (const auto& text : categorical) row.categorical.push_back({text, {}});
    reason.clear();
    return encoder_.encode(row, batch, reason);
  }
  RowEncoder& encoder() { return encoder_; }

  Batch batch;
  std::string reason;

 private:
  Config config_;
  Schema schema_;
  RowEncoder encoder_;
};

Config with_numeric(NumericFeature f) {
  Config config;
  config.features.numeric = {std::move(f)};
  return config;
}
Config with_category(CategoricalFeature f) {
  Config config;
  config.features.categorical = {std::move(f)};
  return config;
}

TEST(ParseNumber, WholeFiniteTexts) {
  EXPECT_EQ(parse_number("0"), 0.0);
  EXPECT_EQ(parse_number("-17"), -17.0);
  EXPECT_EQ(parse_number("007"), 7.0);
  EXPECT_EQ(parse_number("999999999999999"), 999999999999999.0);
  EXPECT_EQ(parse_number("12345678901234567890"), 12345678901234567890.0);
  EXPECT_EQ(parse_number("-1.5e3"), -1500.0);
  EXPECT_EQ(parse_number(".5"), 0.5);
  for (const char* bad : {"", "-", "x", "1x", " 1", "1 ", "nan", "inf", "-inf", "1e999", "0x10", "--1", "+1"})
    EXPECT_EQ(parse_number(bad), std::nullopt) << bad;
}

TEST(Numeric, Transforms) {
  Bench raw(with_numeric(numeric("x", NumericTransform::raw)));
  ASSERT_TRUE(raw.add({"-2.5"}, {}));
  EXPECT_THAT(raw.batch.dense, ElementsAre(-2.5F));

  Bench log(with_numeric(numeric("x", NumericTransform::log1p)));
  ASSERT_TRUE(log.add({"99"}, {}) && log.add({"-99"}, {}) && log.add({"0"}, {}));
  EXPECT_FLOAT_EQ(log.batch.dense[0], std::log(100.0F));
  EXPECT_FLOAT_EQ(log.batch.dense[1], -std::log(100.0F));
  EXPECT_EQ(log.batch.dense[2], 0.0F);
  EXPECT_EQ(log.batch.rows, 3u);

  auto f = numeric("x", NumericTransform::standardize);
  f.mean = 10.0;
  f.stddev = 4.0;
  Bench standard(with_numeric(f));
  ASSERT_TRUE(standard.add({"12"}, {}));
  EXPECT_THAT(standard.batch.dense, ElementsAre(0.5F));
}

TEST(Numeric, StandardizeFromStatistics) {
  Statistics statistics;
  statistics.numeric["x"] = {100.0, 10.0};
  auto f = numeric("x", NumericTransform::standardize);
  Bench from_statistics(with_numeric(f), statistics);
  ASSERT_TRUE(from_statistics.add({"120"}, {}));
  EXPECT_THAT(from_statistics.batch.dense, ElementsAre(2.0F));
  f.mean = 110.0;  // the config goes first
  Bench mixed(with_numeric(f), statistics);
  ASSERT_TRUE(mixed.add({"120"}, {}));
  EXPECT_THAT(mixed.batch.dense, ElementsAre(1.0F));
  EXPECT_THROW(Bench{with_numeric(f)}, ConfigError) << "no stddev anywhere";
}

TEST(Numeric, Missing) {
  auto f = numeric("x", NumericTransform::log1p);
  f.missing_value = -1.0;
  f.missing_indicator = true;
  Config config = with_numeric(f);
  config.features.numeric.push_back(numeric("y"));
  Bench bench(config);
  ASSERT_TRUE(bench.add({kMissing, "5"}, {}) && bench.add({"0", kMissing}, {}));
  EXPECT_EQ(bench.batch.num_dense, 3u);
  EXPECT_THAT(bench.batch.dense, ElementsAre(-1.0F, 1.0F, 5.0F, 0.0F, 0.0F, 0.0F));
}

TEST(Numeric, BadTexts) {
  Bench bench(with_numeric(numeric("price")));
  EXPECT_FALSE(bench.add({"abc"}, {}));
  EXPECT_EQ(bench.reason, "price: 'abc' is no finite number");
  EXPECT_FALSE(bench.add({"nan"}, {}));
  EXPECT_FALSE(bench.add({"1e300"}, {}));
  EXPECT_THAT(bench.reason, HasSubstr("too large for a float"));
  EXPECT_EQ(bench.batch.rows, 0u);
}

TEST(Numeric, Buckets) {
  auto f = numeric("age", NumericTransform::bucketize);
  f.boundaries = {18.0, 25.0, 60.0};
  Bench bench(with_numeric(f));
  for (const char* x : {"-1", "17.9", "18", "59", "60", "1e9"}) ASSERT_TRUE(bench.add({x}, {}));
  ASSERT_TRUE(bench.add({kMissing}, {}));
  EXPECT_THAT(bench.batch.sparse.at(0).ids, ElementsAre(1, 1, 2, 3, 4, 4, 0));
  EXPECT_TRUE(bench.batch.sparse[0].one_per_row());
  EXPECT_EQ(bench.batch.num_dense, 0u);
  EXPECT_FALSE(bench.add({"old"}, {}));
}

TEST(Hash, StaticTable) {
  auto f = category("site", CategoryEncoding::hash, 1000);
  Bench bench(with_category(f));
  ASSERT_TRUE(bench.add({}, {"abc"}) && bench.add({}, {kMissing}) && bench.add({}, {""}));
  const std::uint64_t salt = xxh64("site", 0);
  EXPECT_THAT(bench.batch.sparse.at(0).ids,
              ElementsAre(1 + xxh64("abc", salt) % 999, 0, 1 + xxh64("", salt) % 999));
}

TEST(Hash, SharedTableGivesEqualIds) {
  Config config;
  config.features.categorical = {category("a"), category("b"), category("c")};
  config.features.categorical[0].table = config.features.categorical[1].table = "items";
  Bench bench(config);
  ASSERT_TRUE(bench.add({}, {"x", "x", "x"}));
  EXPECT_EQ(bench.batch.sparse[0].ids, bench.batch.sparse[1].ids);
  EXPECT_NE(bench.batch.sparse[0].ids, bench.batch.sparse[2].ids);
}

TEST(Hash, DynamicTable) {
  Config config = with_category(category("site"));
  config.embedding.kind = TableKind::dynamic;
  Bench bench(config);
  ASSERT_TRUE(bench.add({}, {"abc"}) && bench.add({}, {kMissing}));
  EXPECT_THAT(bench.batch.sparse[0].ids, ElementsAre(xxh64("abc", xxh64("site", 0)), 0));
}

TEST(Hash, SpreadsOverTheWholeTable) {
  Bench bench(with_category(category("site", CategoryEncoding::hash, 101)));
  std::vector<int> seen(101);
  for (int i = 0; i < 10000; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_TRUE(bench.add({}, {text}));
  }
  for (const RowId id : bench.batch.sparse[0].ids) ++seen.at(id);
  EXPECT_EQ(seen[0], 0);
  for (int id = 1; id <= 100; ++id) EXPECT_NEAR(seen[static_cast<std::size_t>(id)], 100, 60) << id;
}

TEST(Vocabulary, RowsByIndex) {
  Statistics statistics;
  statistics.vocabularies["country"] = {"us", "de", ""};
  Bench bench(with_category(category("country", CategoryEncoding::vocabulary, 5)), statistics);
  for (const char* text : {"de", "us", "fr", ""}) ASSERT_TRUE(bench.add({}, {text}));
  ASSERT_TRUE(bench.add({}, {kMissing}));
  EXPECT_THAT(bench.batch.sparse[0].ids, ElementsAre(3, 2, 1, 4, 0));
}

TEST(Vocabulary, ProblemsAreListed) {
  Statistics statistics;
  statistics.vocabularies["small"] = {"a", "b", "c"};
  Config config;
  config.features.categorical = {category("small", CategoryEncoding::vocabulary, 4),
                                 category("unknown", CategoryEncoding::vocabulary),
                                 category("h", CategoryEncoding::hash, 1)};
  try {
    Bench bench(config, statistics);
    FAIL() << "no error";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), testing::AllOf(HasSubstr("small: table small has 4 rows, the vocabulary needs 5"),
                                         HasSubstr("unknown: data.statistics has no vocabulary"),
                                         HasSubstr("h: table h")));
  }
}

TEST(Identity, RangeIsChecked) {
  Bench bench(with_category(category("user", CategoryEncoding::identity, 10)));
  ASSERT_TRUE(bench.add({}, {"0"}) && bench.add({}, {"9"}) && bench.add({}, {kMissing}));
  EXPECT_THAT(bench.batch.sparse[0].ids, ElementsAre(0, 9, 0));
  EXPECT_FALSE(bench.add({}, {"10"}));
  EXPECT_THAT(bench.reason, HasSubstr("table user: id 10 is out of range, the table has 10 rows"));
  for (const char* bad : {"-1", "x", "1.0", "", "18446744073709551616"}) {
    EXPECT_FALSE(bench.add({}, {bad})) << bad;
    EXPECT_THAT(bench.reason, HasSubstr("is no id (table user")) << bad;
  }
  EXPECT_EQ(bench.batch.rows, 3u);
}

TEST(Identity, WrapsByChoice) {
  Config config = with_category(category("user", CategoryEncoding::identity, 10));
  config.embedding.wrap_ids = true;
  Bench bench(config);
  ASSERT_TRUE(bench.add({}, {"25"}));
  EXPECT_THAT(bench.batch.sparse[0].ids, ElementsAre(5));
}

TEST(Identity, DynamicTakesAnyId) {
  Config config = with_category(category("user", CategoryEncoding::identity));
  config.embedding.kind = TableKind::dynamic;
  Bench bench(config);
  ASSERT_TRUE(bench.add({}, {"18446744073709551615"}));
  EXPECT_THAT(bench.batch.sparse[0].ids, ElementsAre(std::numeric_limits<RowId>::max()));
}

TEST(Derive, PartsOfATimestamp) {
  EXPECT_EQ(derive_text("", "x"), "x");
  EXPECT_EQ(derive_text("hour_of_day", "14102100"), "0");
  EXPECT_EQ(derive_text("hour_of_day", "14102123"), "23");
  EXPECT_EQ(derive_text("day", "14102123"), "21");
  EXPECT_EQ(derive_text("day", "14100923"), "9");
  EXPECT_EQ(derive_text("day_of_week", "14102100"), "1") << "2014-10-21 was a Tuesday";
  EXPECT_EQ(derive_text("day_of_week", "00010100"), "5") << "2000-01-01 was a Saturday";
  EXPECT_EQ(derive_text("day_of_week", "24022900"), "3") << "2024-02-29 was a Thursday";
  EXPECT_EQ(derive_text("day_of_week", "24030100"), "4");
  EXPECT_EQ(derive_text("day_of_week", "99123100"), "3") << "2099-12-31 is a Thursday";
  for (const char* bad : {"", "141021", "1410210", "14102124", "14132100", "14003100", "14023000", "23022900",
                          "14100000", "1410210x"})
    EXPECT_EQ(derive_text("day", bad), std::nullopt) << bad;
}

TEST(Derive, InAFeature) {
  auto f = category("hour", CategoryEncoding::identity, 24);
  f.derive = "hour_of_day";
  Bench bench(with_category(f));
  ASSERT_TRUE(bench.add({}, {"14102107"}) && bench.add({}, {kMissing}));
  EXPECT_THAT(bench.batch.sparse[0].ids, ElementsAre(7, 0));
  EXPECT_FALSE(bench.add({}, {"2014-10-21"}));
  EXPECT_EQ(bench.reason, "hour: '2014-10-21' is no timestamp YYMMDDHH");
}

TEST(MultiValue, BagsPossiblyEmpty) {
  auto f = category("tags", CategoryEncoding::identity, 100);
  f.separator = "|";
  Bench bench(with_category(f));
  ASSERT_TRUE(bench.add({}, {"3|5|5"}) && bench.add({}, {kMissing}) && bench.add({}, {""}) &&
              bench.add({}, {"|7||"}));
  const auto& column = bench.batch.sparse[0];
  EXPECT_THAT(column.ids, ElementsAre(3, 5, 5, 7));
  EXPECT_THAT(column.offsets, ElementsAre(0, 3, 3, 3, 4));
  EXPECT_THAT(column.weights, IsEmpty());
  EXPECT_FALSE(bench.add({}, {"1|2|x"}));
  EXPECT_THAT(column.ids, ElementsAre(3, 5, 5, 7));
  EXPECT_THAT(column.offsets, ElementsAre(0, 3, 3, 3, 4));
  f.separator = ", ";
  Bench longer(with_category(f));
  ASSERT_TRUE(longer.add({}, {"1, 2"}));
  EXPECT_THAT(longer.batch.sparse[0].ids, ElementsAre(1, 2));
}

TEST(MultiValue, Weights) {
  Config config = with_category(category("x", CategoryEncoding::identity, 100));
  config.data.format = DataFormat::libsvm;
  const Schema schema = schema_of(config);
  RowEncoder encoder(config, schema, {});
  Batch batch;
  encoder.prepare(batch);
  std::string reason;
  RawRow row;
  row.label = 0.0F;
  row.categorical.resize(1);
  row.categorical[0].values = {{"4", 0.5F}, {"9", -1.0F}};
  ASSERT_TRUE(encoder.encode(row, batch, reason)) << reason;
  row.categorical[0].values.clear();
  ASSERT_TRUE(encoder.encode(row, batch, reason)) << reason;
  row.categorical[0].values = {{"5", 2.0F}, {"100", 1.0F}};
  EXPECT_FALSE(encoder.encode(row, batch, reason));
  EXPECT_THAT(batch.sparse[0].ids, ElementsAre(4, 9));
  EXPECT_THAT(batch.sparse[0].weights, ElementsAre(0.5F, -1.0F));
  EXPECT_THAT(batch.sparse[0].offsets, ElementsAre(0, 2, 2));
}

TEST(Encode, ABadRowLeavesTheBatchAsItWas) {
  Config config;
  auto bucket = numeric("b", NumericTransform::bucketize);
  bucket.boundaries = {1.0};
  config.features.numeric = {numeric("n"), bucket};
  auto tags = category("t", CategoryEncoding::identity, 10);
  tags.separator = " ";
  config.features.categorical = {category("h"), tags, category("i", CategoryEncoding::identity, 10)};
  Bench bench(config);
  ASSERT_TRUE(bench.add({"1", "2"}, {"x", "1 2", "3"}, 0.0F));
  EXPECT_FALSE(bench.add({"bad", "2"}, {"x", "1 2", "3"}));
  EXPECT_FALSE(bench.add({"1", "bad"}, {"x", "1 2", "3"}));
  EXPECT_FALSE(bench.add({"1", "2"}, {"x", "1 2 bad 3", "3"}));
  EXPECT_FALSE(bench.add({"1", "2"}, {"x", "1 2", "99"}));
  ASSERT_TRUE(bench.add({"5", "0"}, {"x", "", "4"}, 1.0F));
  const Batch& batch = bench.batch;
  EXPECT_EQ(batch.rows, 2u);
  EXPECT_THAT(batch.labels, ElementsAre(0.0F, 1.0F));
  EXPECT_THAT(batch.dense, ElementsAre(1.0F, 5.0F));
  ASSERT_EQ(batch.sparse.size(), 4u);
  EXPECT_EQ(batch.sparse[0].ids.size(), 2u);
  EXPECT_THAT(batch.sparse[1].ids, ElementsAre(1, 2));
  EXPECT_THAT(batch.sparse[1].offsets, ElementsAre(0, 2, 2));
  EXPECT_THAT(batch.sparse[2].ids, ElementsAre(3, 4));
  EXPECT_THAT(batch.sparse[3].ids, ElementsAre(2, 1));
}

TEST(Encode, LabelsForAllRowsOrNone) {
  Bench bench(with_numeric(numeric("n")));
  ASSERT_TRUE(bench.add({"1"}, {}, 1.0F) && bench.add({"1"}, {}, std::nullopt) && bench.add({"1"}, {}, 1.0F));
  EXPECT_EQ(bench.batch.rows, 3u);
  EXPECT_THAT(bench.batch.labels, IsEmpty());
}

TEST(Encode, PrepareKeepsTheMemory) {
  Bench bench(with_category(category("c")));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(bench.add({}, {"x"}));
  const auto* memory = bench.batch.sparse[0].ids.data();
  bench.encoder().prepare(bench.batch);
  EXPECT_EQ(bench.batch.rows, 0u);
  EXPECT_THAT(bench.batch.sparse[0].ids, IsEmpty());
  EXPECT_THAT(bench.batch.labels, IsEmpty());
  ASSERT_TRUE(bench.add({}, {"x"}));
  EXPECT_EQ(bench.batch.sparse[0].ids.data(), memory);
}

}  // namespace
}  // namespace hf
