// Reading, defaults, shorthands, printing.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "config_test_support.hpp"

namespace hf {
namespace {

using test::kGood;
using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Config, ReadsValuesAndKeepsDefaults) {
  const Config c =
      parse_config(kGood +
                       "seed: 18446744073709551615\n"
                       "embedding: {dim: 4, kind: dynamic, init: normal, init_scale: 0.1}\n"
                       "model: {name: dcnv2, hidden: [8, 4], cross_rank: 2, dropout: 0.25}\n"
                       "optimizer: {name: adam, learning_rate: 0.003, clip_norm: 5, warmup_steps: 10,\n"
                       "            decay: cosine, decay_steps: 100}\n"
                       "train: {batch_size: 7, staleness_bound: inf, pipeline: no}\n"
                       "cluster: {ps_ratio: 2:5, buffer_pool_size: 8GB, transport: shm}\n",
                   "x.yaml", {});
  EXPECT_EQ(c.seed, 18446744073709551615ULL);
  EXPECT_EQ(c.embedding.dim, 4U);
  EXPECT_EQ(c.embedding.kind, TableKind::dynamic);
  EXPECT_EQ(c.embedding.init, InitKind::normal);
  EXPECT_EQ(c.embedding.init_scale, 0.1F);
  EXPECT_EQ(c.model.name, ModelKind::dcnv2);
  EXPECT_THAT(c.model.hidden, ElementsAre(8U, 4U));
  EXPECT_EQ(c.optimizer.optimizer.kind, OptimizerKind::adam);
  EXPECT_EQ(c.optimizer.optimizer.learning_rate, 0.003F);
  EXPECT_EQ(c.optimizer.decay, DecayKind::cosine);
  EXPECT_EQ(c.train.batch_size, 7U);
  EXPECT_EQ(c.train.staleness_bound, kStalenessInfinite);
  EXPECT_FALSE(c.train.pipeline);
  EXPECT_EQ(c.cluster.ps_ratio, (std::pair{2U, 5U}));
  EXPECT_EQ(c.cluster.buffer_pool_size, 8ULL << 30);
  EXPECT_EQ(c.cluster.transport, Transport::shm);
  // Not given:
  EXPECT_EQ(c.train.epochs, 1U);
  EXPECT_EQ(c.cluster.num_shards, 64U);
  EXPECT_FALSE(c.model.wide_optimizer.has_value());
}

TEST(Config, EmptySectionsAreDefaults) {
  const Config c =
      parse_config(kGood + "train:\nembedding: {optimizer: }\ntables:\nmodel: {hidden: []}\n", "x.yaml", {});
  EXPECT_EQ(c.train.batch_size, TrainConfig{}.batch_size);
  EXPECT_TRUE(c.tables.empty());
  EXPECT_TRUE(c.model.hidden.empty());
}

TEST(Config, FeatureShorthands) {
  const Config c = parse_config(
      "data: {format: criteo}\n"
      "features:\n"
      "  numeric: I3\n"
      "  categorical:\n"
      "    - C26\n"
      "    - {range: C1..C3, buckets: 9, pooling: mean}\n",
      "x.yaml", {});
  ASSERT_EQ(c.features.numeric.size(), 1U);
  EXPECT_EQ(c.features.numeric[0].name, "I3");
  ASSERT_EQ(c.features.categorical.size(), 4U);
  EXPECT_EQ(c.features.categorical[0].name, "C26");
  EXPECT_EQ(c.features.categorical[0].buckets, 0U);
  EXPECT_EQ(c.features.categorical[1].name, "C1");
  EXPECT_EQ(c.features.categorical[3].name, "C3");
  EXPECT_EQ(c.features.categorical[3].buckets, 9U);
  EXPECT_EQ(c.features.categorical[3].pooling, Pooling::mean);
}

TEST(Config, RangeKeepsLeadingZeros) {
  const Config c =
      parse_config("data: {format: libffm}\nfeatures: {categorical: [{range: f08..f11}]}\n", "x.yaml", {});
  ASSERT_EQ(c.features.categorical.size(), 4U);
  EXPECT_EQ(c.features.categorical[0].name, "f08");
  EXPECT_EQ(c.features.categorical[3].name, "f11");
}

TEST(Config, OptimizersInherit) {
  const Config c =
      parse_config(kGood +
                       "tables:\n"
                       "  - {name: a, rows: 9, optimizer: {name: ftrl, l1: 0.5}}\n"
                       "  - {name: b, rows: 9}\n"
                       "model: {name: wide_deep, wide_optimizer: {learning_rate: 0.2}}\n"
                       "embedding: {optimizer: {name: adagrad, learning_rate: 0.3, epsilon: 0.125}}\n",
                   "x.yaml", {});
  ASSERT_TRUE(c.tables[0].optimizer.has_value());
  EXPECT_EQ(c.tables[0].optimizer->kind, OptimizerKind::ftrl);
  EXPECT_EQ(c.tables[0].optimizer->l1, 0.5F);
  EXPECT_EQ(c.tables[0].optimizer->learning_rate, 0.3F);
  EXPECT_EQ(c.tables[0].optimizer->epsilon, 0.125F);
  EXPECT_FALSE(c.tables[1].optimizer.has_value());
  ASSERT_TRUE(c.model.wide_optimizer.has_value());
  EXPECT_EQ(c.model.wide_optimizer->kind, OptimizerKind::ftrl);
  EXPECT_EQ(c.model.wide_optimizer->learning_rate, 0.2F);
}

TEST(Config, AnchorsAndAliases) {
  const Config c = parse_config(kGood +
                                    "embedding: {optimizer: &o {name: adam, learning_rate: 0.5}}\n"
                                    "tables: [{name: t, rows: 4, optimizer: *o}]\n",
                                "x.yaml", {});
  EXPECT_EQ(c.tables[0].optimizer, c.embedding.optimizer);
}

TEST(Config, PathsBecomeAbsolute) {
  const std::string cwd = fs::current_path().string();
  const std::string yaml =
      "workdir: runs/x\nfeatures: {numeric: [I1]}\n"
      "data: {train: [a.tsv, /abs/b.tsv, 'sub/../*.gz'], statistics: s.json";
  Config c = parse_config(yaml + "}\n", "some/dir/x.yaml", {});
  EXPECT_THAT(c.data.train, ElementsAre(cwd + "/some/dir/a.tsv", "/abs/b.tsv", cwd + "/some/dir/*.gz"));
  EXPECT_EQ(c.data.statistics, cwd + "/some/dir/s.json");
  EXPECT_EQ(c.workdir, cwd + "/runs/x");
  EXPECT_EQ(c.checkpoint_dir, "");
  c = parse_config(yaml + ", data_dir: ../data}\n", "some/dir/x.yaml", {});
  EXPECT_EQ(c.data.train[0], cwd + "/some/data/a.tsv");
  EXPECT_EQ(c.data.data_dir, cwd + "/some/data");
  // What was typed into a shell is relative to where the shell is.
  c = parse_config(yaml + ", data_dir: ../data}\n", "some/dir/x.yaml",
                   {{"data.data_dir", "other", "--data_dir"}});
  EXPECT_EQ(c.data.train[0], cwd + "/other/a.tsv");
}

TEST(Config, DelimiterNotations) {
  for (const char* text : {"tab", "'\\t'", "\"\\t\""}) {
    const Config c = parse_config(
        "data: {format: csv, csv: {delimiter: " + std::string(text) + "}}\nfeatures: {numeric: [a]}\n",
        "x.yaml", {});
    EXPECT_EQ(c.data.csv.delimiter, "\t") << text;
  }
}

TEST(Config, PrintRoundTrips) {
  const Config c = parse_config(
      "seed: 7\n"
      "workdir: 'a: b #c'\n"
      "data:\n"
      "  format: csv\n"
      "  data_dir: \"/tmp/quote\\\"back\\\\slash\"\n"
      "  train: ['1', 'null', 'a, b', '[x]', 'ü.csv']\n"
      "  max_line_bytes: 12345\n"
      "  csv: {header: false, delimiter: tab, columns: [a, b, c, y, 'true'], missing: ['', 'NA', '~'], "
      "label: y,\n"
      "        positive: ['>50K', \"two\\nlines\"], negative: []}\n"
      "  split: {by: column, column: '3', derive: day, validation_values: ['30'], test_values: "
      "[\"x\\x01y\"]}\n"
      "features:\n"
      "  default_buckets: 77\n"
      "  numeric:\n"
      "    - {name: a, transform: standardize, mean: 0.1, stddev: 1.0000000000000002, missing_indicator: "
      "true}\n"
      "    - {name: n, column: a, transform: bucketize, boundaries: [-1e-300, 0.30000000000000004, 1e300], "
      "dim: 3}\n"
      "  categorical:\n"
      "    - {name: b, encoding: vocabulary, min_count: 3, max_vocabulary: 100}\n"
      "    - {name: c, separator: '|', pooling: mean, table: t}\n"
      "embedding: {dim: 5, init: normal, init_scale: 1.1754944e-38, wrap_ids: true,\n"
      "            optimizer: {name: ftrl, l1: 0.1, l2: 0.7}}\n"
      "tables: [{name: t, rows: 1000, dim: 6, kind: static, optimizer: {name: rowwise_adagrad}}, {name: u, "
      "kind: dynamic}]\n"
      "model: {name: wide_deep, hidden: [3], wide_optimizer: {learning_rate: 0.3}}\n"
      "optimizer: {decay: exponential, decay_steps: 9, decay_final: 0.1}\n"
      "train: {staleness_bound: inf, log_every_seconds: 0.1}\n"
      "cluster: {ps_ratio: '1:3', buffer_pool_size: 65537}\n",
      "x.yaml", {});
  const std::string printed = print_config(c);
  const Config again = parse_config(printed, "elsewhere/y.yaml", {});
  EXPECT_EQ(print_config(again), printed);
  // The text is equal because the values are, not because both lack them.
  EXPECT_EQ(again.workdir, fs::current_path().string() + "/a: b #c");
  EXPECT_EQ(again.data.data_dir, "/tmp/quote\"back\\slash");
  EXPECT_THAT(again.data.csv.missing, ElementsAre("", "NA", "~"));
  EXPECT_THAT(again.data.csv.positive, ElementsAre(">50K", "two\nlines"));
  EXPECT_THAT(again.data.split.test_values, ElementsAre("x\x01y"));
  EXPECT_EQ(again.data.max_line_bytes, 12345U);
  EXPECT_THAT(again.features.numeric[1].boundaries, ElementsAre(-1e-300, 0.30000000000000004, 1e300));
  EXPECT_EQ(again.features.numeric[0].stddev, 1.0000000000000002);
  EXPECT_EQ(again.embedding.init_scale, 1.1754944e-38F);
  EXPECT_EQ(again.tables[0].optimizer, c.tables[0].optimizer);
  EXPECT_EQ(again.cluster.buffer_pool_size, 65537U);
  EXPECT_EQ(again.cluster.ps_ratio, (std::pair{1U, 3U}));
  EXPECT_EQ(again.train.staleness_bound, kStalenessInfinite);
}

TEST(Config, PrintNamesEveryKey) {
  const std::string printed = print_config(parse_config(kGood, "x.yaml", {}));
  for (const char* key :
       {"seed:", "checkpoint_dir:", "max_bad_rows:", "validation_values:", "positive:", "default_buckets:",
        "missing_indicator:", "max_vocabulary:", "initial_accumulator:", "ftrl_beta:", "tables: []",
        "cross_layers:", "wide_optimizer: null", "decay_final:", "eval_every_steps:", "max_bad_batches:",
        "ps: null", "ps_ratio: null", "wait_timeout_seconds:"})
    EXPECT_THAT(printed, HasSubstr(key));
}

TEST(Config, HashDependsOnWhatTheResultDependsOn) {
  const auto hash = [](const std::string& more) {
    return config_hash(parse_config(kGood + more, "x.yaml", {}));
  };
  const std::string base = hash("");
  EXPECT_EQ(base.size(), 16U);
  EXPECT_EQ(base.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash("workdir: elsewhere\ncheckpoint_dir: c\ncluster: {ps: 3, num_shards: 8}\n"), base);
  EXPECT_NE(hash("seed: 43\n"), base);
  EXPECT_NE(hash("train: {batch_size: 1}\n"), base);
}

TEST(Config, StatisticsProblems) {
  const std::string features =
      "features:\n"
      "  numeric: [{name: I1, transform: standardize}, {name: I2, transform: standardize, mean: 1, stddev: "
      "2}]\n"
      "  categorical: [C1, {name: C2, encoding: vocabulary}]\n";
  const auto problems = [&](const std::string& data) {
    return statistics_problems(parse_config("data: {" + data + "}\n" + features, "x.yaml", {}));
  };
  const auto missing = problems("format: criteo");
  ASSERT_EQ(missing.size(), 2U);
  EXPECT_THAT(missing[0], HasSubstr("I1"));
  EXPECT_THAT(missing[1], HasSubstr("C2"));
  EXPECT_THAT(missing[1], HasSubstr("convert"));
  EXPECT_TRUE(problems("format: criteo, statistics: s.json").empty());
  EXPECT_TRUE(problems("format: packed").empty());
}

TEST(Config, EveryShippedConfigurationLoadsAndRoundTrips) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator("configs")) {
    if (entry.path().extension() != ".yaml") continue;
    ++found;
    SCOPED_TRACE(entry.path().string());
    const Config c = load_config(entry.path().string(), {});
    EXPECT_EQ(print_config(parse_config(print_config(c), "x.yaml", {})), print_config(c));
    EXPECT_FALSE(c.data.train.empty());
    EXPECT_FALSE(c.data.validation.empty() && c.data.split.by == SplitBy::file);
    EXPECT_TRUE(statistics_problems(c).empty());
  }
  EXPECT_EQ(found, 5);
}

TEST(Config, DemoReadsTextForConvert) {
  const Config c = load_config("configs/demo.yaml", {{"data.format", "criteo", "--set"},
                                                     {"data.train", "train.tsv", "--set"},
                                                     {"data.data_dir", "demo/data", "--data_dir"}});
  EXPECT_EQ(c.data.format, DataFormat::criteo);
  EXPECT_THAT(c.data.train, ElementsAre(fs::current_path().string() + "/demo/data/train.tsv"));
}

TEST(Config, KaggleTrainsOnPackedFilesAsItsCommentSays) {
  const Config c = load_config("configs/criteo_kaggle.yaml", {{"data.format", "packed", "--set"},
                                                              {"data.train", "train.h5", "--set"},
                                                              {"data.validation", "validation.h5", "--set"},
                                                              {"data.test", "test.h5", "--set"},
                                                              {"data.split.by", "file", "--set"},
                                                              {"data.split.validation_ratio", "0", "--set"},
                                                              {"data.split.test_ratio", "0", "--set"}});
  EXPECT_EQ(c.data.format, DataFormat::packed);
}

TEST(Config, AdultHasALogisticVariant) {
  const Config c = load_config("configs/adult.yaml", {{"model.name", "lr", "--set"}});
  EXPECT_EQ(c.model.name, ModelKind::lr);
  EXPECT_EQ(c.data.csv.columns.size(), 15U);
  EXPECT_THAT(c.data.csv.negative, testing::IsEmpty());
}

}  // namespace
}  // namespace hf
