#include "core/schema.hpp"

#include "config_test_support.hpp"

namespace hf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const std::vector<TableConfig>& tables) {
  std::vector<std::string> out;
  for (const TableConfig& t : tables) out.push_back(t.name);
  return out;
}
std::vector<std::string> names(const std::vector<SparseFeature>& features) {
  std::vector<std::string> out;
  for (const SparseFeature& f : features) out.push_back(f.name);
  return out;
}

const char* const kConfig =
    "seed: 9\n"
    "data: {format: csv}\n"
    "features:\n"
    "  default_buckets: 500\n"
    "  numeric:\n"
    "    - {name: price, missing_indicator: true}\n"
    "    - {name: age_bucket, column: age, transform: bucketize, boundaries: [10, 20, 30], dim: 3}\n"
    "    - age\n"
    "    - {name: shared_bucket, column: age, transform: bucketize, boundaries: [1], table: items}\n"
    "  categorical:\n"
    "    - {name: last_item, table: items, pooling: mean, separator: '|'}\n"
    "    - {name: city, encoding: vocabulary}\n"
    "    - {name: user, buckets: 70, dim: 5}\n"
    "    - {name: item, table: items}\n"
    "    - {name: ad}\n"
    "embedding: {dim: 16, init: normal, init_scale: 0.5, optimizer: {name: adagrad, learning_rate: 0.25}}\n"
    "tables:\n"
    "  - {name: unused, rows: 3}\n"
    "  - {name: items, rows: 1000, dim: 4, wrap_ids: true, init: zeros, optimizer: {name: adam}}\n";

TEST(Schema, OrderOfColumnsFeaturesAndTables) {
  const Schema s = make_schema(parse_config(kConfig, "x.yaml", {}), {{"other", 3}, {"city", 12}});
  EXPECT_THAT(s.dense, ElementsAre("price", "price.missing", "age"));
  EXPECT_THAT(names(s.sparse),
              ElementsAre("last_item", "city", "user", "item", "ad", "age_bucket", "shared_bucket"));
  EXPECT_THAT(names(s.tables), ElementsAre("items", "city", "user", "ad", "age_bucket"));
  EXPECT_EQ(s.num_dense(), 3U);
  EXPECT_EQ(s.num_sparse(), 7U);
}

TEST(Schema, RowsAndResolvedTables) {
  const Schema s = make_schema(parse_config(kConfig, "x.yaml", {}), {{"city", 12}});
  const std::vector<std::uint64_t> expected = {1000, 12, 70, 1000, 500, 5, 1000};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(s.sparse[i].rows, expected[i]) << s.sparse[i].name;
  EXPECT_EQ(s.sparse[0].table, "items");
  EXPECT_EQ(s.sparse[0].pooling, Pooling::mean);
  EXPECT_TRUE(s.sparse[0].multi_value);
  EXPECT_FALSE(s.sparse[0].weighted);
  EXPECT_FALSE(s.sparse[1].multi_value);
  EXPECT_EQ(s.sparse[6].table, "items");
  for (const TableConfig& t : s.tables) {
    EXPECT_TRUE(t.dim && t.kind && t.wrap_ids && t.init && t.init_scale && t.optimizer) << t.name;
    EXPECT_GT(t.rows, 0U);
  }
  EXPECT_EQ(*s.tables[0].dim, 4U);
  EXPECT_TRUE(*s.tables[0].wrap_ids);
  EXPECT_EQ(s.tables[0].optimizer->kind, OptimizerKind::adam);
  EXPECT_EQ(s.tables[0].optimizer->learning_rate, 0.25F);
  EXPECT_EQ(*s.tables[1].dim, 16U);
  EXPECT_EQ(s.tables[1].optimizer->kind, OptimizerKind::adagrad);
  EXPECT_EQ(*s.tables[2].dim, 5U);
  EXPECT_EQ(*s.tables[4].dim, 3U);
}

TEST(Schema, DynamicTablesHaveNoRows) {
  const Schema s =
      make_schema(parse_config(kConfig, "x.yaml", {{"embedding.kind", "dynamic", "--set"}}), {{"city", 12}});
  for (const TableConfig& t : s.tables) {
    EXPECT_EQ(*t.kind, TableKind::dynamic);
    EXPECT_EQ(t.rows, 0U);
  }
  for (const SparseFeature& f : s.sparse) EXPECT_EQ(f.rows, 0U);
}

TEST(Schema, VocabularyWithoutEntry) {
  const Config c = parse_config(kConfig, "x.yaml", {});
  try {
    make_schema(c, {{"cit", 12}});
    FAIL() << "accepted";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("feature city"));
    EXPECT_THAT(e.what(), HasSubstr("convert"));
  }
}

TEST(Schema, SparseTextIsWeightedAndMultiValue) {
  const Schema s = make_schema(parse_config("data: {format: libffm}\nfeatures: {categorical: [{range: "
                                            "f0..f2, encoding: identity, buckets: 40}]}\n",
                                            "x.yaml", {}),
                               {});
  ASSERT_EQ(s.num_sparse(), 3U);
  for (const SparseFeature& f : s.sparse) {
    EXPECT_TRUE(f.weighted);
    EXPECT_TRUE(f.multi_value);
    EXPECT_EQ(f.rows, 40U);
  }
}

TEST(Schema, TableSpec) {
  const Config c = parse_config(kConfig, "x.yaml", {});
  const Schema s = make_schema(c, {{"city", 12}});
  const TableSpec items = make_table_spec(c, s.tables[0], 5, 1);
  EXPECT_EQ(items.name, "items");
  EXPECT_EQ(items.kind, TableKind::static_rows);
  EXPECT_EQ(items.rows, 1000U);
  EXPECT_EQ(items.dim, 5U);
  EXPECT_TRUE(items.wrap_ids);
  EXPECT_EQ(items.optimizer.kind, OptimizerKind::adam);
  EXPECT_EQ(items.init, (InitSpec{.kind = InitKind::zeros, .scale = 0.5F, .zero_tail = 1, .seed = 9}));
  const TableSpec wide = make_table_spec(c, s.tables[1], 1, 0, ".wide");
  EXPECT_EQ(wide.name, "city.wide");
  EXPECT_EQ(wide.rows, 12U);
  EXPECT_EQ(wide.init, (InitSpec{.kind = InitKind::normal, .scale = 0.5F, .zero_tail = 0, .seed = 9}));
}

}  // namespace
}  // namespace hf
