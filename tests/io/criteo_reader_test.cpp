#include "io/criteo_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using namespace test;
using testing::HasSubstr;

TEST(Criteo, FieldsOfARow) {
  const auto config = criteo_config();
  const std::string text = criteo_line("1", "-3", "") + "\r\n" + criteo_line("0", "", "68fd1e64");
  const auto rows = rows_of(config, text);
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status));
  ASSERT_TRUE(status.good) << status.reason;
  EXPECT_EQ(*status.file, "memory");
  EXPECT_EQ(status.line, 1u);
  EXPECT_EQ(row.label, 1.0F);
  ASSERT_EQ(row.numeric.size(), 13u);
  EXPECT_EQ(row.numeric[0], "-3");
  EXPECT_EQ(row.numeric[12], "13");
  ASSERT_EQ(row.categorical.size(), 26u);
  EXPECT_TRUE(is_missing(row.categorical[0].text));
  EXPECT_EQ(row.categorical[25].text, "c26");
  ASSERT_TRUE(rows->next(row, status));
  EXPECT_EQ(status.line, 2u);
  EXPECT_EQ(row.label, 0.0F);
  EXPECT_TRUE(is_missing(row.numeric[0]));
  EXPECT_EQ(row.categorical[0].text, "68fd1e64");
  EXPECT_FALSE(rows->next(row, status));
}

TEST(Criteo, ColumnsByName) {
  Config config;
  config.features.numeric = {numeric("clicks")};
  config.features.numeric[0].column = "I13";
  config.features.categorical = {category("C2"), category("as_text")};
  config.features.categorical[1].column = "I1";
  const auto text = criteo_line("1", "77");
  const auto rows = rows_of(config, text);
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status) && status.good);
  EXPECT_EQ(row.numeric[0], "13");
  EXPECT_EQ(row.categorical[0].text, "c2");
  EXPECT_EQ(row.categorical[1].text, "77");
}

TEST(Criteo, UnknownColumnsAreListed) {
  Config config;
  config.features.numeric = {numeric("I14"), numeric("C1")};
  config.features.categorical = {category("C27"), category("C0"), category("C01x"), category("C1")};
  try {
    make_line_parser(config);
    FAIL() << "no error";
  } catch (const ConfigError& e) {
    for (const char* name : {"I14", "'C1'", "C27", "C0", "C01x"}) EXPECT_THAT(e.what(), HasSubstr(name));
  }
}

TEST(Criteo, MalformedRows) {
  const auto config = criteo_config();
  EXPECT_EQ(reason_of(config, criteo_line("1")), "");
  EXPECT_THAT(reason_of(config, "1\t2"), HasSubstr("expected 40 fields separated by TABs, found 2"));
  EXPECT_THAT(reason_of(config, criteo_line("1") + "\tx"), HasSubstr("found 41"));
  EXPECT_THAT(reason_of(config, criteo_line("2")), HasSubstr("label '2' is neither 0 nor 1"));
  EXPECT_THAT(reason_of(config, criteo_line("")), HasSubstr("label ''"));
  for (const char* bad : {"1.5", "x", "-", "+1", " 1", "1e3", "9999999999999999999"})
    EXPECT_THAT(reason_of(config, criteo_line("1", bad)), HasSubstr("I1 is '" + std::string(bad) + "'"));
  EXPECT_THAT(reason_of(config, criteo_line("1", "1", std::string("a\0b", 3))), HasSubstr("NUL byte"));
  Config small = config;
  small.data.max_line_bytes = 20;
  EXPECT_THAT(reason_of(small, criteo_line("1")), HasSubstr("data.max_line_bytes = 20"));
}

TEST(Criteo, UnlabelledRows) {
  const auto config = criteo_config();
  const std::string without = criteo_line("1").substr(2);
  EXPECT_THAT(reason_of(config, without), HasSubstr("found 39"));
  EXPECT_EQ(reason_of(config, without, false), "");
  const auto rows = rows_of(config, without, false);
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status) && status.good);
  EXPECT_FALSE(row.label.has_value());
  EXPECT_EQ(row.numeric[0], "1");
  EXPECT_EQ(row.numeric[12], "13");
  EXPECT_EQ(row.categorical[25].text, "c26");
  const auto empty_label = criteo_line("");
  const auto more = rows_of(config, empty_label, false);
  ASSERT_TRUE(more->next(row, status) && status.good);
  EXPECT_FALSE(row.label.has_value());
}

TEST(Criteo, BlankLinesAreNoRowsLinesOfTabsAre) {
  const auto config = criteo_config();
  const std::string text = "\n" + criteo_line("1") + "\n\r\n" + std::string(39, '\t') + "\n";
  const auto rows = rows_of(config, text);
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status));
  EXPECT_EQ(status.line, 2u);
  ASSERT_TRUE(rows->next(row, status));
  EXPECT_EQ(status.line, 4u);
  EXPECT_FALSE(status.good) << "no label";
  EXPECT_FALSE(rows->next(row, status));
}

TEST(Criteo, SplitColumn) {
  auto config = criteo_config();
  config.data.split.by = SplitBy::column;
  const std::string line = criteo_line("1", "", "day3");
  for (const auto& [column, text] :
       {std::pair("C1", "day3"), {"15", "day3"}, {"1", "1"}, {"I2", "2"}, {"C26", "c26"}}) {
    config.data.split.column = column;
    EXPECT_EQ(make_line_parser(config)->split_text(line), text) << column;
  }
  config.data.split.column = "I1";
  EXPECT_TRUE(is_missing(make_line_parser(config)->split_text(line)));
  config.data.split.column = "C26";
  EXPECT_TRUE(is_missing(make_line_parser(config)->split_text("1\t2")));
  config.data.split.column = "41";
  EXPECT_THROW(make_line_parser(config), ConfigError);
}

TEST(Criteo, SampleOfTheRealLog) {
  int clicks = 0;
  for (const auto& [name, expected] : {std::pair("criteo_sample/train.tsv", 7200),
                                       {"criteo_sample/dev.tsv", 409},
                                       {"criteo_sample/test.tsv", 391}}) {
    const auto path = shared_data(name);
    if (path.empty()) GTEST_SKIP() << "no ../shared/data/" << name;
    const auto rows = open_rows(criteo_config(), {path});
    RawRow row;
    RowStatus status;
    int count = 0;
    while (rows->next(row, status)) {
      ASSERT_TRUE(status.good) << path << ":" << status.line << ": " << status.reason;
      ++count;
      clicks += *row.label == 1.0F;
    }
    EXPECT_EQ(count, expected) << name;
  }
  EXPECT_EQ(clicks, 1728);
}

}  // namespace
}  // namespace hf
