#include "io/text_stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.hpp"
#include "io/dataset.hpp"
#include "io/split.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One raw numeric column "n" after the label; the row number stands in it.
Config counting_config() {
  Config config;
  config.data.format = DataFormat::csv;
  config.data.csv.header = false;
  config.data.csv.columns = {"y", "n"};
  config.data.csv.label = "y";
  config.features.numeric = {numeric("n")};
  return config;
}

std::string counting_rows(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += std::to_string(i % 2) + "," + std::to_string(i) + "\n";
  return text;
}

struct Seen {
  std::vector<std::vector<float>> batches;
  std::vector<std::uint64_t> first_rows;
  StreamStats stats;
};

Seen drain(BatchStream& stream) {
  Seen seen;
  Batch batch;
  while (stream.next(batch)) {
    EXPECT_EQ(batch.dense.size(), batch.rows * batch.num_dense);
    EXPECT_TRUE(batch.labels.empty() || batch.labels.size() == batch.rows);
    seen.batches.push_back(batch.dense);
    seen.first_rows.push_back(batch.first_row);
  }
  EXPECT_FALSE(stream.next(batch));
  EXPECT_EQ(batch.rows, 0u);
  seen.stats = stream.stats();
  return seen;
}

Seen drain(const Config& config, const StreamOptions& options) {
  return drain(*open_stream(config, schema_of(config), options));
}

TEST(TextStream, BlocksAreDealtInTurn) {
  const TempDir dir;
  auto config = counting_config();
  config.data.train = {dir.write("a", counting_rows(0, 7)), dir.write("b", counting_rows(7, 20))};
  StreamOptions options;
  options.batch_size = 3;
  options.num_workers = 2;
  const auto even = drain(config, options);
  options.worker = 1;
  const auto odd = drain(config, options);
  EXPECT_THAT(even.batches, ElementsAre(ElementsAre(0, 1, 2), ElementsAre(6, 7, 8), ElementsAre(12, 13, 14),
                                        ElementsAre(18, 19)));
  EXPECT_THAT(odd.batches,
              ElementsAre(ElementsAre(3, 4, 5), ElementsAre(9, 10, 11), ElementsAre(15, 16, 17)));
  EXPECT_THAT(even.first_rows, ElementsAre(0, 6, 12, 18));
  EXPECT_THAT(odd.first_rows, ElementsAre(3, 9, 15));
  EXPECT_EQ(even.stats.rows, 11u);
  EXPECT_EQ(odd.stats.rows, 9u);
}

TEST(TextStream, WorkersTogetherAreOneWorkerWithALargerBatch) {
  const TempDir dir;
  auto config = counting_config();
  config.data.train = {dir.write("a.gz", gzip(counting_rows(0, 1000)))};
  StreamOptions one;
  one.batch_size = 28;
  const auto whole = drain(config, one);
  std::vector<std::vector<float>> joined(whole.batches.size());
  for (std::uint32_t w = 0; w < 4; ++w) {
    StreamOptions options;
    options.batch_size = 7;
    options.num_workers = 4;
    options.worker = w;
    const auto seen = drain(config, options);
    for (std::size_t step = 0; step < seen.batches.size(); ++step)
      joined.at(step).insert(joined.at(step).end(), seen.batches[step].begin(), seen.batches[step].end());
  }
  EXPECT_EQ(joined, whole.batches);
}

TEST(TextStream, MoreWorkersThanBlocks) {
  const TempDir dir;
  auto config = counting_config();
  config.data.train = {dir.write("a", counting_rows(0, 1))};
  StreamOptions options;
  options.num_workers = 3;
  EXPECT_THAT(drain(config, options).batches, ElementsAre(ElementsAre(0)));
  options.worker = 2;
  EXPECT_THAT(drain(config, options).batches, IsEmpty());
  config.data.train = {dir.write("empty", "")};
  options.worker = 0;
  EXPECT_THAT(drain(config, options).batches, IsEmpty());
}

TEST(TextStream, BadRowsHoldTheirPositions) {
  const TempDir dir;
  auto config = counting_config();
  config.data.max_bad_rows = 100;
  const auto file = dir.write("a", "0,0\n1,x\n0,2\n7,3\nbroken\n1,5\n1,6\n");
  config.data.train = {file};
  StreamOptions options;
  options.batch_size = 2;
  options.num_workers = 2;
  const auto even = drain(config, options);
  EXPECT_THAT(even.batches, ElementsAre(ElementsAre(0), ElementsAre(5)));
  EXPECT_EQ(even.stats.rows, 2u);
  ASSERT_EQ(even.stats.bad_rows, 2u) << "those of worker 0 only";
  EXPECT_EQ(even.stats.first_bad_rows[0].file, file);
  EXPECT_EQ(even.stats.first_bad_rows[0].line, 2u);
  EXPECT_THAT(even.stats.first_bad_rows[0].reason, HasSubstr("n: 'x' is no finite number"));
  EXPECT_EQ(even.stats.first_bad_rows[1].line, 5u);
  EXPECT_THAT(even.stats.first_bad_rows[1].reason, HasSubstr("expected 2 fields, found 1"));
  options.worker = 1;
  const auto odd = drain(config, options);
  EXPECT_THAT(odd.batches, ElementsAre(ElementsAre(2), ElementsAre(6)));
  EXPECT_EQ(odd.stats.bad_rows, 1u);
}

TEST(TextStream, ABlockOfBadRowsIsAnEmptyBatch) {
  const TempDir dir;
  auto config = counting_config();
  config.data.max_bad_rows = 100;
  config.data.train = {dir.write("a", "x\nx\n1,2\n")};
  StreamOptions options;
  options.batch_size = 2;
  EXPECT_THAT(drain(config, options).batches, ElementsAre(IsEmpty(), ElementsAre(2)));
}

TEST(TextStream, TooManyBadRows) {
  const TempDir dir;
  auto config = counting_config();
  std::string text = counting_rows(0, 4);
  for (int i = 0; i < 15; ++i) text += "bad\n";
  const auto file = dir.write("a", text);
  config.data.train = {file};
  config.data.max_bad_rows = 14;
  StreamOptions options;
  const auto stream = open_stream(config, schema_of(config), options);
  Batch batch;
  try {
    stream->next(batch);
    FAIL() << "no error";
  } catch (const DataError& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::data);
    EXPECT_THAT(e.what(), HasSubstr("15 malformed rows, data.max_bad_rows allows 14; the first 10:"));
    EXPECT_THAT(e.what(), HasSubstr(file + ":5: expected 2 fields"));
    EXPECT_THAT(e.what(), HasSubstr(file + ":14: "));
    EXPECT_THAT(e.what(), testing::Not(HasSubstr(file + ":15: ")));
  }
  EXPECT_EQ(stream->stats().bad_rows, 15u);
  config.data.max_bad_rows = 15;
  EXPECT_EQ(drain(config, options).stats.bad_rows, 15u);
}

TEST(TextStream, RatioSplitIsAPartition) {
  const TempDir dir;
  auto config = counting_config();
  config.data.train = {dir.write("a", counting_rows(0, 500)), dir.write("b", counting_rows(500, 1000))};
  config.data.split.by = SplitBy::ratio;
  config.data.split.validation_ratio = 0.2;
  config.data.split.test_ratio = 0.1;
  StreamOptions options;
  options.batch_size = 64;
  std::vector<float> all;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    options.split = split;
    const auto seen = drain(config, options);
    for (std::size_t i = 0; i + 1 < seen.batches.size(); ++i)
      EXPECT_EQ(seen.batches[i].size(), 64u) << "positions of the split";
    for (const auto& batch : seen.batches)
      for (const float n : batch) {
        all.push_back(n);
        EXPECT_EQ(ratio_split(config.data.split, static_cast<std::uint64_t>(n)), split);
      }
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 1000u);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<float>(i));
}

TEST(TextStream, ColumnSplit) {
  const TempDir dir;
  Config config = counting_config();
  config.data.csv.columns = {"y", "n", "hour"};
  config.data.split.by = SplitBy::column;
  config.data.split.column = "hour";
  config.data.split.derive = "day";
  config.data.split.validation_values = {"30"};
  config.data.train = {
      dir.write("a", "1,1,14102900\n0,2,14103011\n1,3,14102923\n0,4,14103023\n0,5,14103100\n")};
  StreamOptions options;
  EXPECT_THAT(drain(config, options).batches, ElementsAre(ElementsAre(1, 3, 5)));
  options.split = Split::validation;
  EXPECT_THAT(drain(config, options).batches, ElementsAre(ElementsAre(2, 4)));
  options.split = Split::test;
  EXPECT_FALSE(has_split(config, Split::test));
  EXPECT_THROW(open_stream(config, schema_of(config), options), ConfigError);
  config.data.test = {dir.write("t", "1,9,14103000\n")};
  EXPECT_THAT(drain(config, options).batches, ElementsAre(ElementsAre(9))) << "a given file is used whole";
}

TEST(TextStream, UnlabelledRows) {
  const TempDir dir;
  auto config = counting_config();
  config.data.csv.columns = {"n"};
  config.data.csv.label.clear();
  config.data.test = {dir.write("t", "1\n2\n")};
  StreamOptions options;
  options.split = Split::test;
  options.require_labels = false;
  const auto stream = open_stream(config, schema_of(config), options);
  Batch batch;
  ASSERT_TRUE(stream->next(batch));
  EXPECT_EQ(batch.rows, 2u);
  EXPECT_THAT(batch.labels, IsEmpty());
}

TEST(TextStream, TruncatedGzipEndsWithTheNameOfTheFile) {
  const TempDir dir;
  auto config = counting_config();
  const auto whole = gzip(counting_rows(0, 100000));
  config.data.train = {dir.write("cut.gz", std::string_view(whole).substr(0, whole.size() / 2))};
  StreamOptions options;
  const auto stream = open_stream(config, schema_of(config), options);
  Batch batch;
  try {
    while (stream->next(batch)) EXPECT_GT(batch.rows, 0u);
    FAIL() << "no error";
  } catch (const FormatError& e) {
    EXPECT_THAT(e.what(), HasSubstr("cut.gz: truncated gzip"));
  }
}

TEST(DescribeData, ListsAllProblems) {
  const TempDir dir;
  auto config = counting_config();
  std::filesystem::create_directory(dir.path("empty"));
  config.data.train = {dir.path("absent")};
  config.data.validation = {dir.path("empty")};
  config.data.test = {dir.path("*.none")};
  config.data.statistics = dir.path("statistics.json");
  try {
    describe_data(config);
    FAIL() << "no error";
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(),
                testing::AllOf(HasSubstr("data.train: cannot read"), HasSubstr("data.validation: directory"),
                               HasSubstr("data.test: nothing matches"), HasSubstr("data.statistics: ")));
  }
}

TEST(DescribeData, VocabularySizes) {
  const TempDir dir;
  Config config = counting_config();
  config.features.categorical = {category("v", CategoryEncoding::vocabulary), category("h")};
  config.data.train = {dir.write("a", counting_rows(0, 1))};
  Statistics statistics;
  statistics.vocabularies["v"] = {"a", "b", "c"};
  config.data.statistics = dir.path("statistics.json");
  save_statistics(statistics, config.data.statistics);
  const auto description = describe_data(config);
  EXPECT_THAT(description.vocabulary_sizes, ElementsAre(std::pair<std::string, std::uint64_t>("v", 5)));
}

TEST(TextStream, CriteoSample) {
  auto config = criteo_config();
  config.data.train = {shared_data("criteo_sample/train.tsv")};
  config.data.validation = {shared_data("criteo_sample/dev.tsv")};
  config.data.test = {shared_data("criteo_sample/test.tsv")};
  if (config.data.train[0].empty() || config.data.validation[0].empty() || config.data.test[0].empty())
    GTEST_SKIP() << "no ../shared/data/criteo_sample";
  std::uint64_t clicks = 0;
  for (const auto& [split, expected] :
       {std::pair(Split::train, 7200u), {Split::validation, 409u}, {Split::test, 391u}}) {
    std::uint64_t rows = 0;
    for (std::uint32_t worker = 0; worker < 3; ++worker) {
      StreamOptions options;
      options.split = split;
      options.batch_size = 128;
      options.num_workers = 3;
      options.worker = worker;
      const auto stream = open_stream(config, schema_of(config), options);
      Batch batch;
      while (stream->next(batch)) {
        ASSERT_EQ(batch.labels.size(), batch.rows);
        ASSERT_EQ(batch.sparse.size(), 26u);
        for (const auto& column : batch.sparse) ASSERT_EQ(column.ids.size(), batch.rows);
        rows += batch.rows;
        clicks += static_cast<std::uint64_t>(std::count(batch.labels.begin(), batch.labels.end(), 1.0F));
        for (const float x : batch.dense) ASSERT_TRUE(std::isfinite(x));
      }
      EXPECT_EQ(stream->stats().bad_rows, 0u);
    }
    EXPECT_EQ(rows, expected) << to_string(split);
  }
  EXPECT_EQ(clicks, 1728u);
}

/// The speed is a property in the test's output; the bound is far below it, so that a busy machine does not
/// fail.
TEST(TextStream, CriteoSpeed) {
  const TempDir dir;
  const auto config_and_bytes = [&] {
    auto config = criteo_config();
    std::string text;
    for (int i = 0; i < 100000; ++i) {
      text += std::to_string(i & 1);
      for (int k = 0; k < 13; ++k)
        text += "\t" + (((i + k) % 3) != 0 ? std::to_string((i * 31 + k * 7) % 1000) : "");
      for (int k = 0; k < 26; ++k) {
        char hex[16];
        std::snprintf(hex, sizeof hex, "\t%08x",
                      static_cast<unsigned>(i * 2654435761u + static_cast<unsigned>(k) * 40503u));
        text += hex;
      }
      text += '\n';
    }
    config.data.train = {dir.write("big.tsv", text)};
    config.data.prefetch_batches = 0;
    return std::pair(config, text.size());
  }();
  const Schema schema = schema_of(config_and_bytes.first);
  double best = 0.0;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto stream = open_stream(config_and_bytes.first, schema, {});
    Batch batch;
    std::uint64_t rows = 0;
    const auto begin = std::chrono::steady_clock::now();
    while (stream->next(batch)) rows += batch.rows;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    ASSERT_EQ(rows, 100000u);
    best = std::max(best, static_cast<double>(config_and_bytes.second) / seconds.count() / 1e6);
  }
  RecordProperty("megabytes_per_second", static_cast<int>(best));
  std::printf("criteo text: %.0f MB/s on one core\n", best);
  EXPECT_GT(best, 2.0);
}

}  // namespace
}  // namespace hf
