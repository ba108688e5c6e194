#include "io/convert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "core/error.hpp"
#include "core/schema.hpp"
#include "io/synth.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using test::TempDir;
using testing::HasSubstr;

Config csv_config(const TempDir& dir, const std::string& text) {
  Config c;
  c.data.format = DataFormat::csv;
  c.data.csv.label = "y";
  c.data.train = {dir.write("in/train.csv", text)};
  c.data.prefetch_batches = 2;
  return c;
}

/// The config that reads what `convert` wrote.
Config packed(Config c, const ConvertResult& r) {
  c.data.format = DataFormat::packed;
  c.data.train = c.data.validation = c.data.test = {};
  for (const ConvertedSplit& s : r.splits)
    (s.split == Split::train        ? c.data.train
     : s.split == Split::validation ? c.data.validation
                                    : c.data.test) = {s.file};
  c.data.split = {};
  c.data.statistics.clear();
  return c;
}

std::vector<Batch> batches(const Config& c, Split split, bool labels = true) {
  StreamOptions o;
  o.split = split;
  o.batch_size = 300;
  o.require_labels = labels;
  const Schema schema = make_schema(c, describe_data(c).vocabulary_sizes);
  const auto stream = open_stream(c, schema, o);
  std::vector<Batch> out;
  for (Batch b; stream->next(b);) out.push_back(b);
  return out;
}

void expect_same(const std::vector<Batch>& a, const std::vector<Batch>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].rows, b[i].rows);
    ASSERT_EQ(a[i].first_row, b[i].first_row);
    ASSERT_EQ(a[i].labels, b[i].labels);
    ASSERT_EQ(a[i].dense, b[i].dense);
    ASSERT_EQ(a[i].sparse.size(), b[i].sparse.size());
    for (std::size_t f = 0; f < a[i].sparse.size(); ++f) {
      ASSERT_EQ(a[i].sparse[f].ids, b[i].sparse[f].ids);
      ASSERT_EQ(a[i].sparse[f].offsets, b[i].sparse[f].offsets);
      ASSERT_EQ(a[i].sparse[f].weights, b[i].sparse[f].weights);
    }
  }
}

TEST(Convert, PackedRowsAreTheTextRows) {
  const TempDir dir;
  SynthOptions synth;
  synth.output_dir = dir.path("text");
  synth.rows = 20000;
  synth.validation_rows = 3000;
  const SynthResult made = synthesize(synth);
  Config c = test::criteo_config();
  c.data.train = made.train.files;
  c.data.validation = made.validation.files;
  c.features.categorical[3].encoding = CategoryEncoding::vocabulary;
  c.features.categorical[3].min_count = 3;
  c.features.numeric[4].transform = NumericTransform::standardize;
  c.features.numeric[4].missing_indicator = true;
  c.features.numeric[5].transform = NumericTransform::bucketize;
  c.features.numeric[5].boundaries = {1, 10, 100};
  std::map<std::string, std::uint64_t> stages;
  const ConvertResult r = convert(
      c, dir.path("out"), [&](const std::string& stage, std::uint64_t rows) { stages[stage] = rows; });
  EXPECT_EQ(stages, (std::map<std::string, std::uint64_t>{
                        {"statistics", 20000}, {"train", 20000}, {"validation", 3000}}));
  EXPECT_EQ(r.rows, 23000u);
  EXPECT_EQ(r.bad_rows, 0u);
  ASSERT_EQ(r.splits.size(), 2u);
  EXPECT_EQ(r.splits[0].file, dir.path("out/train.h5"));
  EXPECT_EQ(r.bytes, std::filesystem::file_size(dir.path("out/train.h5")) +
                         std::filesystem::file_size(dir.path("out/validation.h5")));
  EXPECT_FALSE(std::filesystem::exists(dir.path("out/test.h5")));

  Config text = c;
  text.data.statistics = r.statistics_file;
  for (const Split split : {Split::train, Split::validation})
    expect_same(batches(packed(c, r), split), batches(text, split));

  const ConvertResult plain = convert(c, dir.path("plain"), {}, false);
  EXPECT_GT(plain.bytes, r.bytes);
  expect_same(batches(packed(c, plain), Split::train), batches(text, Split::train));
}

TEST(Convert, VocabularyByCountThenText) {
  const TempDir dir;
  Config c = csv_config(dir, "y,job,tags\n1,b,x|y\n0,b,y\n1,a,\n0,a,y|z|z\n1,c,x\n0,,q\n");
  c.data.validation = {dir.write("in/validation.csv", "y,job,tags\n1,only_here,y|unknown\n")};
  c.features.categorical = {test::category("job", CategoryEncoding::vocabulary),
                            test::category("tags", CategoryEncoding::vocabulary)};
  c.features.categorical[1].separator = "|";
  Statistics s = collect_statistics(c);
  EXPECT_EQ(s.vocabularies.at("job"), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(s.vocabularies.at("tags"), (std::vector<std::string>{"y", "x", "z", "q"}));
  c.features.categorical[0].min_count = 2;
  c.features.categorical[1].max_vocabulary = 2;
  s = collect_statistics(c);
  EXPECT_EQ(s.vocabularies.at("job"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(s.vocabularies.at("tags"), (std::vector<std::string>{"y", "x"}));

  const ConvertResult r = convert(c, dir.path("out"));
  EXPECT_EQ(load_statistics(r.statistics_file), s);
  const Config p = packed(c, r);
  EXPECT_EQ(describe_data(p).vocabulary_sizes,
            (std::vector<std::pair<std::string, std::uint64_t>>{{"job", 4}, {"tags", 4}}));
  const Batch train = batches(p, Split::train).at(0), validation = batches(p, Split::validation).at(0);
  EXPECT_EQ(train.sparse[0].ids, (std::vector<RowId>{3, 3, 2, 2, 1, 0}));
  EXPECT_EQ(train.sparse[1].ids, (std::vector<RowId>{3, 2, 2, 2, 1, 1, 3, 1}));
  EXPECT_EQ(train.sparse[1].offsets, (std::vector<std::uint32_t>{0, 2, 3, 3, 6, 7, 8}));
  EXPECT_EQ(validation.sparse[0].ids, (std::vector<RowId>{1}));
  EXPECT_EQ(validation.sparse[1].ids, (std::vector<RowId>{2, 1}));
}

TEST(Convert, MomentsOfTheTrainSplitOnly) {
  const TempDir dir;
  std::string text = "y,x,constant,day,given\n";
  double sum = 0, squares = 0;
  std::uint64_t n = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool validation = i % 4 == 0, missing = i % 10 == 3;
    const double x = 1e6 + i * 0.5;
    text += std::to_string(i % 2) + "," + (missing ? "" : std::to_string(validation ? -1e12 : x)) + ",5," +
            (validation ? "30" : "29") + ",1\n";
    if (validation || missing) continue;
    sum += x;
    ++n;
  }
  const double mean = sum / static_cast<double>(n);
  for (int i = 0; i < 1000; ++i)
    if (i % 4 != 0 && i % 10 != 3) squares += (1e6 + i * 0.5 - mean) * (1e6 + i * 0.5 - mean);
  Config c = csv_config(dir, text);
  c.data.split.by = SplitBy::column;
  c.data.split.column = "day";
  c.data.split.validation_values = {"30"};
  for (const char* name : {"x", "constant", "given"})
    c.features.numeric.push_back(test::numeric(name, NumericTransform::standardize));
  c.features.numeric[2].mean = 0;
  c.features.numeric[2].stddev = 2;
  const Statistics s = collect_statistics(c);
  EXPECT_NEAR(s.numeric.at("x").mean, mean, 1e-6);
  EXPECT_NEAR(s.numeric.at("x").stddev, std::sqrt(squares / static_cast<double>(n)), 1e-6);
  EXPECT_EQ(s.numeric.at("constant"), (NumericMoments{5, 1}));
  EXPECT_FALSE(s.numeric.contains("given"));
  const ConvertResult r = convert(c, dir.path("out"));
  ASSERT_EQ(r.splits.size(), 2u);
  EXPECT_EQ(r.splits[0].rows, 750u);
  EXPECT_EQ(r.splits[1].rows, 250u);
}

TEST(Convert, SplitByRatioKeepsEveryRowOnce) {
  const TempDir dir;
  std::string text = "y,x\n";
  for (int i = 0; i < 5000; ++i) text += "1," + std::to_string(i) + "\n";
  Config c = csv_config(dir, text);
  c.features.numeric = {test::numeric("x")};
  c.data.split.by = SplitBy::ratio;
  c.data.split.validation_ratio = 0.3;
  c.data.split.test_ratio = 0.1;
  const ConvertResult r = convert(c, dir.path("out"));
  ASSERT_EQ(r.splits.size(), 3u);
  EXPECT_EQ(r.rows, 5000u);
  EXPECT_NEAR(static_cast<double>(r.splits[1].rows), 1500, 150);
  std::vector<float> seen;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    const auto here = batches(packed(c, r), split);
    expect_same(here, batches(c, split));
    for (const Batch& b : here) seen.insert(seen.end(), b.dense.begin(), b.dense.end());
  }
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), 5000u);
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], static_cast<float>(i));
}

TEST(Convert, BadRows) {
  const TempDir dir;
  Config c = csv_config(dir, "y,x,job\n1,5,a\n0,abc,b\n1,7\n2,1,a\n0,9,a\n");
  c.features.numeric = {test::numeric("x", NumericTransform::standardize)};
  c.features.categorical = {test::category("job", CategoryEncoding::vocabulary)};
  c.data.max_bad_rows = 3;
  const ConvertResult r = convert(c, dir.path("out"));
  EXPECT_EQ(r.rows, 2u);
  EXPECT_EQ(r.bad_rows, 3u);
  ASSERT_EQ(r.first_bad_rows.size(), 3u);
  EXPECT_EQ(r.first_bad_rows[0].line, 3u);
  // A row that is bad in one feature counts for no other.
  const Statistics s = load_statistics(r.statistics_file);
  EXPECT_EQ(s.vocabularies.at("job"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(s.numeric.at("x"), (NumericMoments{7, 2}));
  c.data.max_bad_rows = 2;
  EXPECT_THROW(convert(c, dir.path("other")), DataError);
  EXPECT_FALSE(std::filesystem::exists(dir.path("other/train.h5")));
}

TEST(Convert, WeightedBagsOfLibsvm) {
  const TempDir dir;
  Config c;
  c.data.format = DataFormat::libsvm;
  c.data.train = {dir.write("in.svm", "1 3:0.5 7:2\n0\n1 9:1\n")};
  c.features.categorical = {test::category("f", CategoryEncoding::identity, 10)};
  const ConvertResult r = convert(c, dir.path("out"));
  const auto rows = batches(packed(c, r), Split::train);
  expect_same(rows, batches(c, Split::train));
  EXPECT_EQ(rows.at(0).sparse[0].weights, (std::vector<float>{0.5F, 2, 1}));
}

TEST(Convert, WithoutLabels) {
  const TempDir dir;
  Config c = csv_config(dir, "y,x\n1,5\n");
  c.data.csv.label.clear();
  c.features.numeric = {test::numeric("x")};
  c.data.test = c.data.train;
  c.data.train.clear();
  const ConvertResult r = convert(c, dir.path("out"));
  ASSERT_EQ(r.splits.size(), 1u);
  EXPECT_EQ(r.splits[0].file, dir.path("out/test.h5"));
  const auto rows = batches(packed(c, r), Split::test, false);
  EXPECT_TRUE(rows.at(0).labels.empty());
  EXPECT_EQ(rows.at(0).dense, std::vector<float>{5});
}

TEST(Convert, Refusals) {
  const TempDir dir;
  Config c = csv_config(dir, "y,x\n1,5\n");
  c.features.numeric = {test::numeric("x", NumericTransform::standardize)};
  Config already = c;
  already.data.format = DataFormat::packed;
  EXPECT_THROW(convert(already, dir.path("out")), ConfigError);
  Config no_train = c;
  no_train.data.test = no_train.data.train;
  no_train.data.train.clear();
  EXPECT_THROW(convert(no_train, dir.path("out")), ConfigError);
  // With statistics of an earlier run it can be done.
  Statistics s;
  s.numeric["x"] = {3, 4};
  save_statistics(s, dir.path("earlier.json"));
  no_train.data.statistics = dir.path("earlier.json");
  const ConvertResult r = convert(no_train, dir.path("out"));
  EXPECT_EQ(batches(packed(no_train, r), Split::test).at(0).dense, std::vector<float>{0.5});
  Config nothing = no_train;
  nothing.data.test.clear();
  EXPECT_THROW(convert(nothing, dir.path("out2")), ConfigError);
  EXPECT_THROW(convert(c, dir.write("file", "x") + "/below"), IoError);
}

TEST(Convert, RealCriteoSample) {
  const std::string train = test::shared_data("criteo_sample/train.tsv"),
                    dev = test::shared_data("criteo_sample/dev.tsv");
  if (train.empty() || dev.empty()) GTEST_SKIP() << "../shared/data/criteo_sample is not there";
  const TempDir dir;
  Config c = test::criteo_config();
  c.data.train = {train};
  c.data.validation = {dev};
  c.features.categorical[0].encoding = CategoryEncoding::vocabulary;
  const ConvertResult r = convert(c, dir.path());
  EXPECT_EQ(r.bad_rows, 0u);
  EXPECT_EQ(r.splits.at(0).rows, 7200u);
  EXPECT_EQ(r.splits.at(1).rows, 409u);
  Config text = c;
  text.data.statistics = r.statistics_file;
  expect_same(batches(packed(c, r), Split::train), batches(text, Split::train));
}

}  // namespace
}  // namespace hf
