// Model quality on real data against the reference results that come with it. Skipped where the data is not there.
#include <gtest/gtest.h>

#include "tests/ranks/run_program.hpp"

namespace hf::test {
namespace {

const std::string kData = std::string(HF_SOURCE_DIR) + "/../shared/data";

nlohmann::json train(const Scratch& dir, const std::string& arguments) {
  const Outcome o = hyperframes(3, "train " + arguments + " --ps 1 --workdir " + (dir / "run"));
  EXPECT_EQ(o.code, 0) << o.output;
  return read_json(dir / "run/summary.json");
}

TEST(Adult, ReachesTheReference) {
  if (!std::filesystem::exists(kData + "/adult/adult.data")) GTEST_SKIP() << "no " << kData << "/adult";
  const Scratch dir;
  const std::string config =
      std::string(HF_SOURCE_DIR) + "/configs/adult.yaml --data_dir " + kData + "/adult ";
  const auto lr = train(dir, config + "--set model.name=lr"), deep = train(dir, config);
  EXPECT_EQ(lr["test"]["rows"], 16281);
  EXPECT_GE(lr["test"]["auc"].get<double>(), 0.899);
  EXPECT_GE(deep["test"]["auc"].get<double>(), 0.905) << deep["model"];
}

TEST(CriteoSample, LogisticRegressionReachesTheReference) {
  if (!std::filesystem::exists(kData + "/criteo_sample/train.tsv"))
    GTEST_SKIP() << "no " << kData << "/criteo_sample";
  const Scratch dir;
  const std::string config =
      dir.write("c.yaml",
                "data: {format: criteo, train: train.tsv, validation: dev.tsv, test: test.tsv}\n"
                "features:\n  default_buckets: 10000\n"
                "  numeric: [{range: I1..I13, transform: log1p}]\n"
                "  categorical: [{range: C1..C26}]\n"
                "embedding: {optimizer: {name: adagrad, learning_rate: 0.02, initial_accumulator: 0.01}}\n"
                "model: {name: lr}\n"
                "optimizer: {name: adagrad, learning_rate: 0.02, initial_accumulator: 0.01}\n"
                "train: {batch_size: 64, epochs: 4, staleness_bound: 0}\n");
  const auto s = train(dir, config + " --data_dir " + kData + "/criteo_sample");
  EXPECT_EQ(s["validation"]["rows"], 409);
  EXPECT_GE(s["validation"]["auc"].get<double>(), 0.706 - 0.02);
  EXPECT_GE(s["test"]["auc"].get<double>(), 0.746 - 0.02);
}

}  // namespace
}  // namespace hf::test
