#include "io/csv_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

/// Columns y (label), a, b, c; every one of a, b, c is a categorical feature.
Config abc() {
  Config config;
  config.data.format = DataFormat::csv;
  config.data.csv.header = false;
  config.data.csv.columns = {"y", "a", "b", "c"};
  config.data.csv.label = "y";
  for (const char* name : {"a", "b", "c"}) config.features.categorical.push_back(category(name));
  return config;
}

/// The texts of a, b, c in each row of `text`; "<missing>" and "<bad: reason>".
std::vector<std::string> texts(const Config& config, std::string_view text, bool require_labels = true) {
  std::vector<std::string> out;
  const auto rows = rows_of(config, text, require_labels);
  RawRow row;
  RowStatus status;
  while (rows->next(row, status)) {
    if (!status.good) {
      out.push_back("<bad: " + status.reason + ">");
      continue;
    }
    for (const auto& c : row.categorical)
      out.push_back(is_missing(c.text) ? "<missing>" : std::string(c.text));
  }
  return out;
}

TEST(Csv, PlainFields) {
  EXPECT_THAT(texts(abc(), "1,x,y,z\n0,,yy,\r\n"),
              ElementsAre("x", "y", "z", "<missing>", "yy", "<missing>"));
}

TEST(Csv, QuotedFields) {
  EXPECT_THAT(texts(abc(), R"(1,"x,1","say ""hi""","")"), ElementsAre("x,1", "say \"hi\"", "<missing>"));
  EXPECT_THAT(texts(abc(), R"(1,"""a""",""""," b ")"), ElementsAre("\"a\"", "\"", " b "));
  EXPECT_THAT(texts(abc(), R"("1","a""b""c","d",e"f)"), ElementsAre("a\"b\"c", "d", "e\"f"));
  EXPECT_THAT(texts(abc(), "1, \"x\" ,\t\"y\",z"), ElementsAre("x", "y", "z"))
      << "blanks around quotes are trimmed";
}

TEST(Csv, BrokenQuotes) {
  EXPECT_THAT(texts(abc(), "1,\"x,y,z\n0,a,b,c\n"),
              ElementsAre(HasSubstr("does not end on this line (field 2)"), "a", "b", "c"));
  EXPECT_THAT(texts(abc(), "1,\"x\"y,z,w"),
              ElementsAre(HasSubstr("text follows the closing quote of field 2")));
  EXPECT_THAT(texts(abc(), "1,x,y,\"z\"\""), ElementsAre(HasSubstr("does not end")));
}

TEST(Csv, Trim) {
  auto config = abc();
  EXPECT_THAT(texts(config, " 1 ,  x , y y ,\tz\t"), ElementsAre("x", "y y", "z"));
  EXPECT_THAT(texts(config, "1,   ,y,z"), ElementsAre("<missing>", "y", "z"));
  config.data.csv.trim = false;
  EXPECT_THAT(texts(config, "1, x ,y,z"), ElementsAre(" x ", "y", "z"));
  EXPECT_THAT(texts(config, "1, \"x\",y,z"), ElementsAre(" \"x\"", "y", "z"));
}

TEST(Csv, Delimiters) {
  for (const auto& [name, c] :
       {std::pair(";", ';'), {"tab", '\t'}, {"\\t", '\t'}, {"\t", '\t'}, {"|", '|'}, {" ", ' '}}) {
    auto config = abc();
    config.data.csv.delimiter = name;
    std::string line = "1#x#\"y#y\"#z\n0###w\n";
    std::replace(line.begin(), line.end(), '#', c);
    EXPECT_THAT(texts(config, line),
                ElementsAre("x", "y" + std::string(1, c) + "y", "z", "<missing>", "<missing>", "w"))
        << name;
  }
  for (const char* bad : {"", ",,", "\"", "\n"}) {
    auto config = abc();
    config.data.csv.delimiter = bad;
    EXPECT_THROW(make_line_parser(config), ConfigError) << bad;
  }
}

TEST(Csv, WrongNumberOfFields) {
  EXPECT_THAT(texts(abc(), "1,x,y\n1,x,y,z,\n"),
              ElementsAre(HasSubstr("expected 4 fields, found 3"), HasSubstr("expected 4 fields, found 5")));
}

TEST(Csv, MissingMarkers) {
  auto config = abc();
  config.data.csv.missing = {"?", "NA"};
  EXPECT_THAT(texts(config, "1,?,NA,\n1,\"?\",N,A"),
              ElementsAre("<missing>", "<missing>", "", "<missing>", "N", "A"));
}

TEST(Csv, Labels) {
  auto config = abc();
  config.data.csv.positive = {">50K", ">50K."};
  config.data.csv.negative = {"<=50K"};
  EXPECT_EQ(reason_of(config, ">50K.,a,b,c"), "");
  EXPECT_EQ(reason_of(config, "<=50K,a,b,c"), "");
  EXPECT_THAT(reason_of(config, "<=50K.,a,b,c"), HasSubstr("label '<=50K.' is in neither"));
  EXPECT_THAT(reason_of(config, ",a,b,c"), HasSubstr("the label is missing"));
  config.data.csv.negative.clear();
  const auto rows = rows_of(config, "other,a,b,c\n>50K,a,b,c");
  RawRow row;
  RowStatus status;
  ASSERT_TRUE(rows->next(row, status) && status.good);
  EXPECT_EQ(row.label, 0.0F);
  ASSERT_TRUE(rows->next(row, status) && status.good);
  EXPECT_EQ(row.label, 1.0F);
}

TEST(Csv, HeaderNamesTheColumnsOfEachFile) {
  auto config = abc();
  config.data.csv.header = true;
  config.data.csv.columns.clear();
  EXPECT_THAT(texts(config,
                    "\xEF\xBB\xBF"
                    "c, \"a\",id,y,b\nz,x,7,1,y\n"),
              ElementsAre("x", "y", "z"));

  const TempDir dir;
  const auto one = dir.write("1.csv", "y,a,b,c\n1,x,y,z\n"), two = dir.write("2.csv", "c,b,a,y\nz,y,x,1\n");
  const auto rows = open_rows(config, {one, dir.write("empty.csv", ""), two});
  RawRow row;
  RowStatus status;
  for (const auto& file : {one, two}) {
    ASSERT_TRUE(rows->next(row, status) && status.good) << status.reason;
    EXPECT_EQ(*status.file, file);
    EXPECT_EQ(status.line, 2u);
    EXPECT_EQ(row.categorical[0].text, "x");
    EXPECT_EQ(row.categorical[2].text, "z");
  }
  EXPECT_FALSE(rows->next(row, status));
}

TEST(Csv, HeaderThatLacksColumns) {
  auto config = abc();
  config.data.csv.header = true;
  config.data.csv.columns.clear();
  try {
    reason_of(config, "y,a\n1,x\n");
    FAIL() << "no error";
  } catch (const DataError& e) {
    EXPECT_THAT(e.what(),
                testing::AllOf(HasSubstr("memory"), HasSubstr("'b'"), HasSubstr("'c'"), HasSubstr("y, a")));
  }
  EXPECT_THROW(reason_of(config, "y,a,a,b,c\n"), DataError) << "a name twice";
  EXPECT_THROW(reason_of(config, "a,b,c\nx,y,z\n"), DataError) << "no label";
  EXPECT_EQ(reason_of(config, "a,b,c\nx,y,z\n", false), "") << "no label needed";
  config.data.max_line_bytes = 5;
  EXPECT_THROW(reason_of(config, "y,a,b,c\n1,2,3\n"), DataError) << "a header that is too long to be read";
}

TEST(Csv, NamedColumnsReplaceTheHeader) {
  auto config = abc();
  config.data.csv.header = true;
  EXPECT_THAT(texts(config, "h1,h2,h3,h4\n1,x,y,z"), ElementsAre("x", "y", "z"));
  EXPECT_THROW(texts(config, "h1,h2\n1,x,y,z"), DataError);
}

TEST(Csv, ConfigProblems) {
  auto config = abc();
  config.data.csv.columns = {"y", "a"};
  try {
    make_line_parser(config);
    FAIL() << "no error";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), testing::AllOf(HasSubstr("'b'"), HasSubstr("'c'")));
  }
  config.data.csv.columns.clear();
  EXPECT_THROW(make_line_parser(config), ConfigError) << "no header, no names";
  config = abc();
  config.data.csv.label.clear();
  EXPECT_THROW(make_line_parser(config), ConfigError);
  EXPECT_NO_THROW(make_line_parser(config, false));
}

TEST(Csv, SplitColumn) {
  auto config = abc();
  config.data.split.by = SplitBy::column;
  for (const char* column : {"b", "3"}) {
    config.data.split.column = column;
    const auto parser = make_line_parser(config);
    EXPECT_EQ(parser->split_text("1,x,\"d\"\"1\",z"), "d\"1");
    EXPECT_TRUE(is_missing(parser->split_text("1,x,,z")));
    EXPECT_TRUE(is_missing(parser->split_text("1,x")));
  }
  config.data.split.column = "5";
  EXPECT_THROW(make_line_parser(config), ConfigError);
}

TEST(Csv, AdultCensus) {
  Config config;
  config.data.format = DataFormat::csv;
  config.data.csv.header = false;
  config.data.csv.columns = {"age",          "workclass",    "fnlwgt",       "education", "education_num",
                             "marital",      "occupation",   "relationship", "race",      "sex",
                             "capital_gain", "capital_loss", "hours",        "country",   "income"};
  config.data.csv.missing = {"?"};
  config.data.csv.label = "income";
  config.data.csv.positive = {">50K", ">50K."};
  config.data.csv.negative = {"<=50K", "<=50K."};
  config.features.numeric = {numeric("age"), numeric("hours")};
  config.features.categorical = {category("workclass"), category("country")};
  for (const auto& [name, expected, rich] :
       {std::tuple("adult/adult.data", 32561, 7841), {"adult/adult.test", 16281, 3846}}) {
    const auto path = shared_data(name);
    if (path.empty()) GTEST_SKIP() << "no ../shared/data/" << name;
    const auto rows = open_rows(config, {path});
    RawRow row;
    RowStatus status;
    int count = 0, positive = 0, unknown = 0;
    while (rows->next(row, status)) {
      ASSERT_TRUE(status.good) << path << ":" << status.line << ": " << status.reason;
      ++count;
      positive += *row.label == 1.0F;
      unknown += is_missing(row.categorical[0].text);
    }
    EXPECT_EQ(count, expected) << name;
    EXPECT_EQ(positive, rich) << name;
    EXPECT_GT(unknown, 900) << name;
  }
}

}  // namespace
}  // namespace hf
