#include "io/synth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using test::TempDir;
using testing::HasSubstr;

SynthOptions small(const std::string& dir) {
  SynthOptions o;
  o.output_dir = dir;
  o.rows = 5000;
  o.validation_rows = 1000;
  return o;
}

std::vector<std::vector<std::string>> rows_in(const std::string& text) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto& row = out.emplace_back();
    for (std::size_t begin = 0;;) {
      const auto end = line.find('\t', begin);
      row.push_back(line.substr(begin, end - begin));
      if (end == std::string::npos) break;
      begin = end + 1;
    }
  }
  return out;
}

TEST(Synth, CriteoFormat) {
  const TempDir dir;
  const SynthResult result = synthesize(small(dir.path()));
  EXPECT_EQ(result.train.rows, 5000u);
  const std::string text = read_small_file(dir.path("train.tsv"));
  EXPECT_EQ(text.size() + read_small_file(dir.path("validation.tsv")).size(), result.bytes);
  EXPECT_EQ(text.back(), '\n');
  const auto rows = rows_in(text);
  ASSERT_EQ(rows.size(), 5000u);
  std::uint64_t clicks = 0, missing = 0, negative = 0;
  std::map<std::string, int> c3;
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 40u);
    ASSERT_TRUE(row[0] == "0" || row[0] == "1");
    clicks += row[0] == "1";
    for (std::size_t i = 1; i < 40; ++i) missing += row[i].empty();
    for (std::size_t i = 1; i <= 13; ++i) {
      ASSERT_EQ(row[i].find_first_not_of("-0123456789"), std::string::npos) << row[i];
      negative += row[i].starts_with("-");
    }
    for (std::size_t i = 14; i < 40; ++i)
      ASSERT_TRUE(row[i].empty() ||
                  (row[i].size() == 8 && row[i].find_first_not_of("0123456789abcdef") == std::string::npos));
    ++c3[row[16]];
  }
  EXPECT_EQ(clicks, result.train.clicks);
  EXPECT_NEAR(static_cast<double>(clicks) / 5000, 0.25, 0.03);
  EXPECT_NEAR(static_cast<double>(missing) / (5000 * 39), 0.05, 0.005);
  EXPECT_GT(negative, 0u);
  EXPECT_GT(c3.size(), 100u);
  // The most frequent category of a Zipf law.
  EXPECT_GT(
      std::max_element(c3.begin(), c3.end(), [](auto& a, auto& b) { return a.second < b.second; })->second,
      700);
}

TEST(Synth, SameSeedSameBytesForAnyNumberOfFiles) {
  const TempDir one, three, other, longer;
  synthesize(small(one.path()));
  SynthOptions o = small(three.path());
  o.files = 3;
  const SynthResult split = synthesize(o);
  ASSERT_EQ(split.train.files.size(), 3u);
  std::string joined;
  for (const char* name : {"train_000.tsv", "train_001.tsv", "train_002.tsv"})
    joined += read_small_file(three.path(name));
  const std::string text = read_small_file(one.path("train.tsv"));
  EXPECT_EQ(joined, text);
  EXPECT_EQ(read_small_file(three.path("validation.tsv")), read_small_file(one.path("validation.tsv")));

  o = small(longer.path());
  o.rows = 6000;
  synthesize(o);
  EXPECT_EQ(read_small_file(longer.path("train.tsv")).substr(0, text.size()), text);
  o = small(other.path());
  o.seed = 43;
  synthesize(o);
  EXPECT_NE(read_small_file(other.path("train.tsv")), text);

  // Again with fewer files: those of the first time are gone.
  o = small(three.path());
  synthesize(o);
  EXPECT_FALSE(std::filesystem::exists(three.path("train_000.tsv")));
  EXPECT_EQ(read_small_file(three.path("train.tsv")), text);
}

TEST(Synth, GzipHoldsTheSameText) {
  const TempDir plain, packed;
  synthesize(small(plain.path()));
  SynthOptions o = small(packed.path());
  o.gzip = true;
  synthesize(o);
  gzFile in = gzopen(packed.path("train.tsv.gz").c_str(), "rb");
  ASSERT_NE(in, nullptr);
  std::string text(1 << 21, '\0');
  text.resize(static_cast<std::size_t>(gzread(in, text.data(), static_cast<unsigned>(text.size()))));
  EXPECT_EQ(gzdirect(in), 0);
  gzclose(in);
  EXPECT_EQ(text, read_small_file(plain.path("train.tsv")));
  EXPECT_TRUE(std::filesystem::exists(packed.path("validation.tsv.gz")));
}

TEST(Synth, TruthIsThatOfTheModelAndTheRows) {
  const TempDir dir;
  SynthOptions o = small(dir.path());
  o.rows = 60000;
  const SynthResult result = synthesize(o);
  const auto truth = nlohmann::json::parse(read_small_file(dir.path("truth.json")));
  EXPECT_EQ(truth.at("train").at("auc").get<double>(), result.train.auc);
  EXPECT_EQ(truth.at("validation").at("logloss").get<double>(), result.validation.logloss);
  EXPECT_EQ(truth.at("train").at("rows").get<std::uint64_t>(), 60000u);
  EXPECT_EQ(truth.at("train").at("clicks").get<std::uint64_t>(), result.train.clicks);
  EXPECT_EQ(truth.at("train").at("files").at(0).get<std::string>(), "train.tsv");
  EXPECT_EQ(truth.at("generator").at("interactions").size(), o.interactions);
  EXPECT_GT(result.train.auc, 0.76);
  EXPECT_LT(result.train.auc, 0.84);
  const double rate = static_cast<double>(result.train.clicks) / 60000;
  EXPECT_LT(result.train.logloss, -rate * std::log(rate) - (1 - rate) * std::log(1 - rate));

  // Without any signal nothing can be learned, and the truth says so.
  o.numeric_scale = o.category_scale = o.interaction_scale = 0;
  const TempDir none;
  o.output_dir = none.path();
  const SynthResult flat = synthesize(o);
  EXPECT_DOUBLE_EQ(flat.train.auc, 0.5);
  EXPECT_NEAR(flat.train.logloss, -0.25 * std::log(0.25) - 0.75 * std::log(0.75), 0.01);
  // With an overwhelming one nearly everything can.
  o.numeric_scale = 10;
  const TempDir strong;
  o.output_dir = strong.path();
  EXPECT_GT(synthesize(o).train.auc, 0.99);
}

TEST(Synth, ImpossibleOptionsAreListed) {
  SynthOptions o;
  o.rows = 0;
  o.base_rate = 1;
  o.missing_rate = -1;
  o.interactions = 14;
  o.vocabulary = {5, 0};
  try {
    synthesize(o);
    FAIL() << "no error";
  } catch (const ConfigError& e) {
    for (const char* part : {"output directory", "rows", "base_rate", "missing_rate", "interactions",
                             "1 or 26 sizes", "found 0"})
      EXPECT_THAT(e.what(), HasSubstr(part));
  }
}

TEST(Synth, DiskErrors) {
  const TempDir dir;
  const std::string file = dir.write("file", "x");
  EXPECT_THROW(synthesize(small(file + "/below")), IoError);
  // A file of somebody else is not overwritten.
  dir.write("truth.json", "{\"mine\": 1}");
  EXPECT_THROW(synthesize(small(dir.path())), FormatError);

  // A full disk, as the system's limit on the size of files.
  const TempDir full;
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit limited = old;
  limited.rlim_cur = 100000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  EXPECT_THROW(synthesize(small(full.path())), IoError);
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, previous);
  EXPECT_TRUE(std::filesystem::is_empty(full.path()));
}

}  // namespace
}  // namespace hf
