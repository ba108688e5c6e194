#include "io/libsvm_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using namespace test;
using testing::HasSubstr;

Config libsvm() {
  Config config;
  config.data.format = DataFormat::libsvm;
  config.features.categorical = {category("x", CategoryEncoding::identity, 1000)};
  return config;
}

TEST(Libsvm, LabelsAndPairs) {
  const auto rows =
      rows_of(libsvm(), "+1 1:0.5 7:-2 12:1e3\n-1\n1 3:1 # a comment: 4:x\n0 \t 5:+1\n-1.0 6:2 \n");
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 1.0F);
  const auto& values = row.categorical.at(0).values;
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].id, "1");
  EXPECT_EQ(values[0].weight, 0.5F);
  EXPECT_EQ(values[1].weight, -2.0F);
  EXPECT_EQ(values[2].id, "12");
  EXPECT_EQ(values[2].weight, 1000.0F);
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 0.0F);
  EXPECT_TRUE(row.categorical.at(0).values.empty());
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 1.0F);
  EXPECT_EQ(row.categorical.at(0).values.size(), 1u);
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 0.0F);
  EXPECT_EQ(row.categorical.at(0).values.at(0).weight, 1.0F);
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 0.0F);
  EXPECT_FALSE(rows->next(row, status));
}

TEST(Libsvm, CommentsAndBlankLinesAreNoRows) {
  const auto rows = rows_of(libsvm(), "# header\n\n   \n  # more\n1 1:1\n");
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status));
  EXPECT_EQ(status.line, 5u);
  EXPECT_FALSE(rows->next(row, status));
}

TEST(Libsvm, MalformedRows) {
  EXPECT_THAT(reason_of(libsvm(), "2 1:1"), HasSubstr("label '2' is none of 1, 0, -1"));
  EXPECT_THAT(reason_of(libsvm(), "+-1 1:1"), HasSubstr("label '+-1'"));
  EXPECT_THAT(reason_of(libsvm(), "1:1 2:1"), HasSubstr("no label"));
  for (const char* bad : {"1", "1:", ":1", "x:1", "-1:1", "1:x", "1:1:1", "1:nan", "1:inf", "1:1e99", "qid:3",
                          "99999999999999999999:1"})
    EXPECT_THAT(reason_of(libsvm(), "1 2:1 " + std::string(bad)),
                HasSubstr("expected id:value, found '" + std::string(bad)));
  EXPECT_THAT(reason_of(libsvm(), std::string("1 1:\0"
                                              "1",
                                              6)),
              HasSubstr("NUL byte"));
}

TEST(Libsvm, UnlabelledRows) {
  const auto rows = rows_of(libsvm(), "1:1 2:1\n0 3:1", false);
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_FALSE(row.label.has_value());
  EXPECT_EQ(row.categorical.at(0).values.size(), 2u);
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 0.0F);
}

TEST(Libsvm, NeedsOneFeature) {
  auto config = libsvm();
  config.features.categorical.push_back(category("y"));
  EXPECT_THROW(make_line_parser(config), ConfigError);
  config = libsvm();
  config.features.numeric = {numeric("n")};
  EXPECT_THROW(make_line_parser(config), ConfigError);
  config = libsvm();
  config.data.split.by = SplitBy::column;
  EXPECT_THROW(make_line_parser(config), ConfigError);
  config = libsvm();
  config.data.format = DataFormat::libfm;
  EXPECT_EQ(reason_of(config, "1 0:1"), "");
}

}  // namespace
}  // namespace hf
