#include "io/libffm_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using namespace test;
using testing::HasSubstr;

Config libffm() {
  Config config;
  config.data.format = DataFormat::libffm;
  for (const char* name : {"user", "item", "tags"})
    config.features.categorical.push_back(category(name, CategoryEncoding::identity, 1000));
  return config;
}

TEST(Libffm, FieldsGoToTheirFeatures) {
  const auto rows = rows_of(libffm(), "1 0:11:1 2:5:0.5 2:6:-0.5\n0 1:7:2\n");
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 1.0F);
  ASSERT_EQ(row.categorical.size(), 3u);
  ASSERT_EQ(row.categorical[0].values.size(), 1u);
  EXPECT_EQ(row.categorical[0].values[0].id, "11");
  EXPECT_TRUE(row.categorical[1].values.empty());
  ASSERT_EQ(row.categorical[2].values.size(), 2u);
  EXPECT_EQ(row.categorical[2].values[1].id, "6");
  EXPECT_EQ(row.categorical[2].values[1].weight, -0.5F);
  ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
  EXPECT_EQ(row.label, 0.0F);
  EXPECT_TRUE(row.categorical[0].values.empty());
  EXPECT_EQ(row.categorical[1].values.at(0).weight, 2.0F);
  EXPECT_FALSE(rows->next(row, status));
}

TEST(Libffm, MalformedRows) {
  EXPECT_THAT(reason_of(libffm(), "1 3:1:1"),
              HasSubstr("field 3 is beyond the config's 3 categorical features"));
  EXPECT_THAT(reason_of(libffm(), "x 0:1:1"), HasSubstr("label 'x'"));
  for (const char* bad : {"0:1", "0", "a:1:1", "0:a:1", ":1:1", "0::1", "-1:1:1"})
    EXPECT_THAT(reason_of(libffm(), "1 0:1:1 " + std::string(bad)),
                HasSubstr("expected field:id:value, found '" + std::string(bad)));
  for (const char* bad : {"0:1:", "0:1:x", "0:1:1:1", "0:1:inf"})
    EXPECT_THAT(reason_of(libffm(), "1 " + std::string(bad)), HasSubstr("is no finite number"));
}

TEST(Libffm, Config) {
  auto config = libffm();
  config.features.numeric = {numeric("n")};
  EXPECT_THROW(make_line_parser(config), ConfigError);
  config = libffm();
  config.features.categorical.clear();
  EXPECT_THROW(make_line_parser(config), ConfigError);
  config = libffm();
  config.data.split.by = SplitBy::column;
  EXPECT_THROW(make_line_parser(config), ConfigError);
}

}  // namespace
}  // namespace hf
