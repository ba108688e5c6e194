#include "io/inputs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.hpp"
#include "io/dataset.hpp"
#include "io/split.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Inputs, FilesKeepTheirOrderDirectoriesAreSorted) {
  const TempDir dir;
  const auto z = dir.write("z.tsv", "x");
  const auto a = dir.write("a.tsv", "x");
  const auto part2 = dir.write("days/part-2", "x");
  const auto part10 = dir.write("days/part-10", "x");
  dir.write("days/_SUCCESS", "");
  dir.write("days/.crc", "");
  dir.write("days/sub/deep", "x");
  EXPECT_THAT(expand_inputs({z, a}), ElementsAre(z, a));
  EXPECT_THAT(expand_inputs({z, dir.path("days")}), ElementsAre(z, part10, part2));
  EXPECT_THAT(expand_inputs({dir.path("days/_SUCCESS")}), ElementsAre(dir.path("days/_SUCCESS")));
}

TEST(Inputs, Globs) {
  const TempDir dir;
  const auto b = dir.write("b.tsv", "x");
  const auto a = dir.write("a.tsv", "x");
  const auto inside = dir.write("sub.tsv/inside", "x");
  dir.write("c.csv", "x");
  dir.write("_c.tsv", "x");
  EXPECT_THAT(expand_inputs({dir.path("*.tsv")}), ElementsAre(a, b, inside));
  EXPECT_THAT(expand_inputs({dir.path("_*.tsv")}), ElementsAre(dir.path("_c.tsv")));
  EXPECT_THAT(expand_inputs({dir.path("[ab].tsv")}), ElementsAre(a, b));
  const auto brackets = dir.write("x[1].tsv", "x");
  EXPECT_THAT(expand_inputs({brackets}), ElementsAre(brackets)) << "an existing name is no glob";
}

TEST(Inputs, AllProblemsAtOnce) {
  const TempDir dir;
  std::filesystem::create_directory(dir.path("empty"));
  std::vector<std::string> problems;
  const auto good = dir.write("good", "x");
  const auto files =
      expand_inputs({dir.path("absent"), good, dir.path("empty"), dir.path("*.none")}, problems);
  EXPECT_THAT(files, ElementsAre(good));
  ASSERT_THAT(problems, SizeIs(3));
  EXPECT_THAT(problems[0], HasSubstr("cannot read " + dir.path("absent") + ": No such file"));
  EXPECT_THAT(problems[1], HasSubstr("empty has no files"));
  EXPECT_THAT(problems[2], HasSubstr("nothing matches " + dir.path("*.none")));
  try {
    expand_inputs({dir.path("absent"), dir.path("empty")});
    FAIL() << "no error";
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(), testing::AllOf(HasSubstr("absent"), HasSubstr("empty")));
  }
}

TEST(Inputs, UnreadableFile) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file";
  const TempDir dir;
  const auto secret = dir.write("secret", "x");
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  EXPECT_THROW(expand_inputs({secret}), IoError);
}

TEST(Split, InputsOfASplit) {
  DataConfig data;
  data.train = {"t"};
  data.validation = {"v"};
  EXPECT_THAT(split_inputs(data, Split::validation).names, ElementsAre("v"));
  EXPECT_FALSE(split_inputs(data, Split::train).filter);
  EXPECT_THAT(split_inputs(data, Split::test).names, IsEmpty());

  data.split.by = SplitBy::ratio;
  data.split.test_ratio = 0.1;
  EXPECT_TRUE(split_inputs(data, Split::train).filter);
  EXPECT_FALSE(split_inputs(data, Split::validation).filter) << "a given file is used whole";
  EXPECT_THAT(split_inputs(data, Split::test).names, ElementsAre("t"));
  EXPECT_TRUE(split_inputs(data, Split::test).filter);
  data.split.test_ratio = 0.0;
  EXPECT_THAT(split_inputs(data, Split::test).names, IsEmpty());

  data.split.by = SplitBy::column;
  data.split.test_values = {"x"};
  data.validation.clear();
  EXPECT_THAT(split_inputs(data, Split::test).names, ElementsAre("t"));
  Config config;
  config.data = data;
  EXPECT_TRUE(has_split(config, Split::train));
  EXPECT_FALSE(has_split(config, Split::validation));
  EXPECT_TRUE(has_split(config, Split::test));
}

TEST(Split, RatioIsAboutRightAndSeeded) {
  SplitConfig split;
  split.validation_ratio = 0.1;
  split.test_ratio = 0.2;
  int counts[3] = {}, moved = 0;
  SplitConfig other = split;
  other.seed = 43;
  for (std::uint64_t row = 0; row < 100000; ++row) {
    ++counts[static_cast<int>(ratio_split(split, row))];
    if (ratio_split(split, row) != ratio_split(other, row)) ++moved;
  }
  EXPECT_NEAR(counts[static_cast<int>(Split::train)], 70000, 700);
  EXPECT_NEAR(counts[static_cast<int>(Split::validation)], 10000, 500);
  EXPECT_NEAR(counts[static_cast<int>(Split::test)], 20000, 600);
  EXPECT_GT(moved, 30000);
}

TEST(Split, ByColumn) {
  SplitConfig split;
  split.by = SplitBy::column;
  split.validation_values = {"a", "b"};
  split.test_values = {"c"};
  EXPECT_EQ(column_split(split, "a"), Split::validation);
  EXPECT_EQ(column_split(split, "c"), Split::test);
  EXPECT_EQ(column_split(split, "d"), Split::train);
  EXPECT_EQ(column_split(split, kMissing), Split::train);

  split.derive = "day";
  split.validation_values = {"05"};
  split.test_values = {"141030"};
  EXPECT_EQ(column_split(split, "14100500"), Split::validation);
  EXPECT_EQ(column_split(split, "14103023"), Split::test);
  EXPECT_EQ(column_split(split, "14093023"), Split::train) << "the 30th of another month";
  EXPECT_EQ(column_split(split, "14103024"), Split::train) << "no such hour";
  split.derive = "hour_of_day";
  split.test_values = {"7"};
  EXPECT_EQ(column_split(split, "14103007"), Split::test);
}

}  // namespace
}  // namespace hf
