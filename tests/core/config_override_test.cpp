// Flags and environment over the file.
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "config_test_support.hpp"

namespace hf {
namespace {

using test::error_of;
using test::kGood;
using test::set_error;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Config with(const std::string& yaml, const std::vector<Override>& overrides) {
  return parse_config(yaml, "x.yaml", overrides);
}

TEST(Overrides, LaterWinsOverEarlierOverFileOverDefault) {
  const std::string yaml = kGood + "train: {batch_size: 1, epochs: 2}\n";
  const char* const environment[] = {"HF_TRAIN__BATCH_SIZE=10", "HF_TRAIN__EPOCHS=20", "PATH=/bin",
                                     "HF_SEED=5", nullptr};
  std::vector<Override> overrides = environment_overrides(environment);
  ASSERT_EQ(overrides.size(), 3U);
  overrides.push_back({"train.batch_size", "100", "--set"});
  const Config c = with(yaml, overrides);
  EXPECT_EQ(c.train.batch_size, 100U);  // flag
  EXPECT_EQ(c.train.epochs, 20U);       // environment
  EXPECT_EQ(c.seed, 5U);
  EXPECT_EQ(with(yaml, {}).train.epochs, 2U);   // file
  EXPECT_EQ(with(kGood, {}).train.epochs, 1U);  // default
  EXPECT_EQ(with(kGood, {{"seed", "1", "a"}, {"seed", "2", "b"}}).seed, 2U);
}

TEST(Overrides, ProblemsNameTheOrigin) {
  EXPECT_THAT(set_error("train.batch_sze", "3"),
              HasSubstr("\n  --set: train.batch_sze: unknown key; did you mean train.batch_size?"));
  EXPECT_THAT(set_error("trian.batch_size", "3"),
              HasSubstr("--set: trian: unknown key; did you mean train?"));
  EXPECT_THAT(error_of(kGood, {{"train.batch_size", "x", "--batch_size"}}),
              HasSubstr("\n  --batch_size: train.batch_size: expected a whole number"));
  EXPECT_THAT(set_error("seed.x", "1"),
              HasSubstr("--set: seed: expected a whole number of at least 0, found a mapping"));
  EXPECT_THAT(error_of("seed: 4\n" + kGood, {{"seed.x", "1", "--set"}}),
              HasSubstr("--set: seed.x: seed is \"4\" (x.yaml:1), not a mapping"));
  EXPECT_THAT(set_error("", "1"), HasSubstr("expected a key like"));
  EXPECT_THAT(set_error("train..x", "1"), HasSubstr("expected a key like"));
  EXPECT_THAT(set_error("workdir", "[a"), HasSubstr("is no YAML text; put it in quotes"));
  // The file's problem and the flag's in one list.
  EXPECT_THAT(
      error_of(kGood + "sed: 4\n", {{"train.epochs", "0", "--epochs"}}),
      AllOf(HasSubstr("2 problems"), HasSubstr("x.yaml:5: sed"), HasSubstr("--epochs: train.epochs")));
}

TEST(Overrides, ValuesAreYaml) {
  const Config c = with(kGood, {{"model.hidden", "[3, 2]", "--set"},
                                {"data.train", "[b.tsv, '/c d']", "--set"},
                                {"embedding", "{dim: 3, kind: dynamic}", "--set"},
                                {"workdir", "'/a: b'", "--set"},
                                {"data.csv.label", "", "--set"}});
  EXPECT_THAT(c.model.hidden, ElementsAre(3U, 2U));
  EXPECT_EQ(c.data.train[1], "/c d");
  EXPECT_EQ(c.embedding.dim, 3U);
  EXPECT_EQ(c.workdir, "/a: b");
  EXPECT_EQ(c.data.csv.label, "");
}

TEST(Overrides, NullUnsetsAnOptionalKey) {
  const std::string yaml = kGood + "cluster: {ps: 3}\n";
  const Config c =
      with(yaml, {{"cluster.ps", "null", "--ps-ratio"}, {"cluster.ps_ratio", "'1:2'", "--ps-ratio"}});
  EXPECT_FALSE(c.cluster.ps.has_value());
  EXPECT_EQ(c.cluster.ps_ratio, (std::pair{1U, 2U}));
}

TEST(Overrides, ReachListItemsByNameAndIndex) {
  const std::string yaml =
      "data: {format: criteo}\nfeatures: {numeric: [I1], categorical: [{range: C1..C3}]}\ntables: [{name: t, "
      "rows: 4}]\n";
  const Config c = with(yaml, {{"features.categorical.C2.buckets", "77", "--set"},
                               {"features.numeric.0.transform", "raw", "--set"},
                               {"tables.t.rows", "9", "--set"}});
  EXPECT_EQ(c.features.categorical[0].buckets, 0U);
  EXPECT_EQ(c.features.categorical[1].buckets, 77U);
  EXPECT_EQ(c.features.numeric[0].transform, NumericTransform::raw);
  EXPECT_EQ(c.tables[0].rows, 9U);
  EXPECT_THAT(error_of(yaml, {{"tables.tt.rows", "9", "--set"}}),
              HasSubstr("--set: tables.tt.rows: tables has no item \"tt\"; did you mean t?"));
  EXPECT_THAT(error_of(yaml, {{"tables.1.rows", "9", "--set"}}), HasSubstr("tables has no item \"1\""));
}

TEST(Overrides, WholeListsTakeShorthands) {
  const Config c = with(kGood, {{"features.categorical", "[{range: C5..C6}]", "--set"}});
  ASSERT_EQ(c.features.categorical.size(), 2U);
  EXPECT_EQ(c.features.categorical[1].name, "C6");
}

TEST(Overrides, Environment) {
  const char* const environment[] = {"HF_FEATURES__DEFAULT_BUCKETS=99",
                                     "HF_LOG_LEVEL=debug",
                                     "HF_TEST_X=1",
                                     "HF_HOME=/cache",
                                     "HF_HUB_OFFLINE=1",
                                     "HF_WORKDIR=a=b",
                                     "HF_TRAIN__BATCH_SZE=3",
                                     "NOT_HF_TRAIN__EPOCHS=3",
                                     nullptr};
  const std::vector<Override> overrides = environment_overrides(environment);
  ASSERT_EQ(overrides.size(), 3U);
  EXPECT_EQ(overrides[0].key, "features.default_buckets");
  EXPECT_EQ(overrides[0].value, "99");
  EXPECT_EQ(overrides[0].origin, "HF_FEATURES__DEFAULT_BUCKETS");
  EXPECT_EQ(overrides[2].value, "a=b");
  EXPECT_THAT(
      error_of(kGood, overrides),
      HasSubstr("\n  HF_TRAIN__BATCH_SZE: train.batch_sze: unknown key; did you mean train.batch_size?"));
  EXPECT_TRUE(environment_overrides(nullptr).empty());
}

class ModelConfig_ : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("hf_model_" + std::to_string(::getpid()) + ".yaml"))
                .string();
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void write(const std::string& text) { std::ofstream(path_) << text; }
  Override flag() const { return {"model_config", path_, "--model_config"}; }

  std::string path_;
};

TEST_F(ModelConfig_, IsMergedOverTheFileAndUnderOtherOverrides) {
  write("model: {name: dlrm, bottom_hidden: [9]}\noptimizer: {name: adam}\n");
  const std::string yaml = kGood + "model: {name: lr, hidden: [7]}\noptimizer: {clip_norm: 3}\n";
  const Config c = with(yaml, {{"model.bottom_hidden", "[5]", "--set"}, flag()});
  EXPECT_EQ(c.model.name, ModelKind::dlrm);
  EXPECT_THAT(c.model.hidden, ElementsAre(7U));
  EXPECT_THAT(c.model.bottom_hidden, ElementsAre(5U));
  EXPECT_EQ(c.optimizer.optimizer.kind, OptimizerKind::adam);
  EXPECT_EQ(c.optimizer.clip_norm, 3);
}

TEST_F(ModelConfig_, ProblemsNameItsLines) {
  write("model:\n  nme: dlrm\ntrain: {epochs: 3}\n");
  EXPECT_THAT(error_of(kGood, {flag()}),
              AllOf(HasSubstr(path_ + ":2: model.nme: unknown key; did you mean model.name?"),
                    HasSubstr(path_ + ":3: train: a model configuration has the keys")));
  write("");
  EXPECT_THAT(error_of(kGood, {flag()}),
              HasSubstr("expected a mapping (model, embedding, optimizer), found nothing"));
  std::filesystem::remove(path_);
  EXPECT_THAT(error_of(kGood, {flag()}), HasSubstr(path_ + ": cannot be read"));
}

}  // namespace
}  // namespace hf
