// The program end to end: results, reproducibility, uneven work, errors, on several rank counts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "tests/ranks/run_program.hpp"

namespace hf::test {
namespace {

std::string config(const std::string& extra_train = "") {
  return "data: {format: criteo, train: train.tsv, validation: validation.tsv}\n"
         "features:\n"
         "  default_buckets: 500\n"
         "  numeric: [{range: I1..I13}]\n"
         "  categorical: [{range: C1..C26}]\n"
         "embedding: {dim: 4, optimizer: {name: adagrad, learning_rate: 0.05, initial_accumulator: 0.1}}\n"
         "model: {name: deepfm, hidden: [16]}\n"
         "optimizer: {name: adagrad, learning_rate: 0.02, initial_accumulator: 0.1}\n"
         "cluster: {num_shards: 16, buffer_pool_size: 4MiB, wait_timeout_seconds: 60}\n"
         "train: {batch_size: 64, staleness_bound: 0" +
         extra_train + "}\n";
}

class EndToEnd : public testing::Test {
 protected:
  void SetUp() override {
    dir.write("train.tsv", criteo_rows(3000, 1));
    dir.write("validation.tsv", criteo_rows(1000, 2));
    path = dir.write("c.yaml", config());
  }
  nlohmann::json train(int ranks, const std::string& workdir, const std::string& flags = "") {
    const Outcome o = hyperframes(ranks, "train " + path + " --workdir " + (dir / workdir) + " " + flags);
    EXPECT_EQ(o.code, 0) << o.output;
    return read_json(dir / workdir + "/summary.json");
  }
  static std::string checkpoint(const nlohmann::json& summary) {
    return summary.at("checkpoint").get<std::string>();
  }

  Scratch dir;
  std::string path;
};

TEST_F(EndToEnd, BareProgramTrainsEvaluatesAndPredicts) {
  const auto s = train(0, "run");
  EXPECT_EQ(s["status"], "done");
  EXPECT_EQ(s["samples"], 3000);
  EXPECT_EQ(s["roles"], "1 hybrid");
  EXPECT_EQ(s["transport"], "shm");
  EXPECT_GT(s["auc"].get<double>(), 0.65);  // few rows, much noise: learned, not guessed
  for (const char* key : {"steps", "logloss", "calibration", "samples_per_second", "wall_seconds",
                          "cpu_seconds", "bytes_pushed", "bytes_pulled", "rows_pulled",
                          "peak_rss_bytes_per_rank", "bad_rows", "config_hash", "version"})
    EXPECT_TRUE(s.contains(key)) << key;

  // The same numbers from the checkpoint, on another number of servers and workers.
  const Outcome eval = hyperframes(3, "eval " + path + " --workdir " + (dir / "run") + " --ps 2");
  ASSERT_EQ(eval.code, 0) << eval.output;
  const auto e = read_json(dir / "run/eval.json");
  EXPECT_NEAR(e["auc"].get<double>(), s["auc"].get<double>(), 1e-6);
  EXPECT_NEAR(e["logloss"].get<double>(), s["logloss"].get<double>(), 1e-6);

  // Unlabelled rows get scores, in order, whatever the number of workers.
  std::string unlabelled, text = criteo_rows(1000, 2);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    unlabelled += text.substr(at + 2, end - at - 1);
    at = end + 1;
  }
  dir.write("unlabelled.tsv", unlabelled);
  const std::string base =
      "predict " + path + " --workdir " + (dir / "run") + " --set data.test=unlabelled.tsv ";
  const Outcome one = hyperframes(0, base + "--output " + (dir / "one.csv")),
                three = hyperframes(4, base + "--output " + (dir / "three.csv"));
  ASSERT_EQ(one.code, 0) << one.output;
  ASSERT_EQ(three.code, 0) << three.output;
  std::ifstream a(dir / "one.csv"), b(dir / "three.csv");
  std::string la, lb;
  int lines = 0;
  while (std::getline(a, la)) {
    ASSERT_TRUE(std::getline(b, lb));
    if (lines > 0) {
      EXPECT_EQ(la.substr(0, la.find(',')), std::to_string(lines - 1));
      EXPECT_NEAR(std::stod(la.substr(la.find(',') + 1)), std::stod(lb.substr(lb.find(',') + 1)), 1e-6);
    }
    ++lines;
  }
  EXPECT_EQ(lines, 1001);
}

TEST_F(EndToEnd, SynchronousRunsAreBitIdenticalAndServersDoNotMatter) {
  // Two workers each time.
  const auto one = read_rows(checkpoint(train(3, "a", "--ps 1")));
  const auto again = read_rows(checkpoint(train(3, "b", "--ps 1")));
  const auto two = read_rows(checkpoint(train(4, "c", "--ps 2")));
  const auto three = read_rows(checkpoint(train(5, "d", "--ps 3")));
  EXPECT_GT(one.size(), 1000u);
  EXPECT_TRUE(one == again) << "from run to run";
  EXPECT_TRUE(one == two) << "1 and 2 servers";
  EXPECT_TRUE(one == three) << "1 and 3 servers";
}

TEST_F(EndToEnd, WorkersChangeOnlyTheBatchComposition) {
  // One worker with batches of 128 and two with 64 learn from the same rows at each step.
  const auto one = read_rows(checkpoint(train(2, "a", "--ps 1 --batch_size 128")));
  const auto two = read_rows(checkpoint(train(3, "b", "--ps 1 --batch_size 64")));
  ASSERT_EQ(one.size(), two.size());
  double difference = 0, norm = 0;
  for (const auto& [key, record] : one) {
    const auto& other = two.at(key);
    for (std::size_t i = 0; i < record.size(); ++i) {
      difference += std::pow(record[i] - other[i], 2);
      norm += std::pow(record[i], 2);
    }
  }
  EXPECT_LE(std::sqrt(difference / norm), 1e-5);
}

TEST_F(EndToEnd, TransportMpiGivesTheSameBits) {
  const auto shm = read_rows(checkpoint(train(3, "a", "--ps 1 --transport shm"))),
             mpi = read_rows(checkpoint(train(3, "b", "--ps 1 --rdma")));
  EXPECT_TRUE(shm == mpi);
}

TEST_F(EndToEnd, StalenessStaysWithinTheBound) {
  for (const char* bound : {"0", "1", "4"}) {
    const auto s = train(4, std::string("s") + bound, std::string("--ps 1 --staleness_bound ") + bound);
    EXPECT_LE(s["max_observed_lag"].get<int>(), std::atoi(bound)) << bound;
    EXPECT_EQ(s["samples"], 3000);
  }
  const auto s = train(4, "inf", "--ps 1 --staleness_bound inf");
  std::uint64_t deferred = 0;
  for (const auto& r : s["ranks"])
    if (r.contains("server")) deferred += r["server"]["deferred_pulls"].get<std::uint64_t>();
  EXPECT_EQ(deferred, 0u);
}

TEST_F(EndToEnd, UnevenWorkEndsWithRightCounts) {
  struct Case {
    const char* what;
    std::size_t rows;
    int ranks;
    std::string flags;
  };
  for (const Case& c :
       {Case{"more workers than blocks", 100, 5, "--ps 1"}, Case{"one row in all", 1, 4, "--ps 1"},
        Case{"last block short", 64 * 3 + 1, 3, "--ps 1"},
        Case{"hybrids, one with nothing", 50, 2, "--role hybrid"},
        Case{"two epochs, evaluation in between", 1000, 4,
             "--ps 1 --epochs 2 --set train.eval_every_steps=3"}}) {
    SCOPED_TRACE(c.what);
    for (const char* bound : {"0", "2", "inf"}) {
      dir.write("train.tsv", criteo_rows(c.rows, 3));
      const auto s = train(c.ranks, "u", c.flags + " --staleness_bound " + bound);
      EXPECT_EQ(s["samples"].get<std::size_t>(), c.rows * s["epochs"].get<std::size_t>()) << bound;
    }
  }
}

TEST_F(EndToEnd, EmptyBagsAndBlocksOfBadRows) {
  // libffm: field 1 is empty in every row of the first block; the second block holds malformed rows only.
  std::string text;
  for (int i = 0; i < 8; ++i) text += std::to_string(i % 2) + " 0:" + std::to_string(i) + ":1\n";
  for (int i = 0; i < 8; ++i) text += "x 0:1:1\n";
  for (int i = 0; i < 8; ++i)
    text += std::to_string(i % 2) + " 0:" + std::to_string(i) + ":1 1:3:0.5 1:4:2\n";
  for (int i = 0; i < 8; ++i) text += "1\n";  // only empty bags
  dir.write("t.ffm", text);
  path =
      dir.write("f.yaml",
                "data: {format: libffm, train: t.ffm, max_bad_rows: 8}\n"
                "features: {default_buckets: 50, categorical: [a, b]}\n"
                "embedding: {dim: 3}\nmodel: {name: fm}\ncluster: {num_shards: 8, buffer_pool_size: 4MiB}\n"
                "train: {batch_size: 8}\n");
  for (const int ranks : {0, 3, 6}) {
    const auto s = train(ranks, "e");
    EXPECT_EQ(s["samples"], 24) << ranks;
    EXPECT_EQ(s["bad_rows"], 8) << ranks;
  }
  const Outcome o =
      hyperframes(3, "train " + path + " --workdir " + (dir / "e") + " --set data.max_bad_rows=3");
  EXPECT_EQ(o.code, 3) << o.output;
  EXPECT_NE(o.output.find("t.ffm:9"), std::string::npos) << o.output;
}

TEST_F(EndToEnd, MistakesAreNamedOnEveryRankCountAndNeverHang) {
  dir.write("typo.yaml", config() + "modle: {name: lr}\noptimizer2: 3\n");
  for (const int ranks : {0, 1, 2, 4}) {
    const Outcome o = hyperframes(ranks, "train " + (dir / "typo.yaml"));
    EXPECT_EQ(o.code, 2) << o.output;
    EXPECT_NE(o.output.find("typo.yaml:11"), std::string::npos) << o.output;
    EXPECT_NE(o.output.find("modle"), std::string::npos);
    EXPECT_NE(o.output.find("model"), std::string::npos);
    EXPECT_EQ(o.output.find("modle"), o.output.rfind("modle")) << "once, not once a rank: " << o.output;
    EXPECT_LT(o.seconds, 20);  // a hang would be 60 s; typically well below 2 s
  }
  EXPECT_EQ(hyperframes(2, "train " + path + " --ps 2 --workdir " + (dir / "x")).code, 2);
  EXPECT_EQ(hyperframes(2, "train " + path + " --ps 1 --ps-ratio 1:1 --workdir " + (dir / "x")).code, 2);
  EXPECT_EQ(hyperframes(2, "train " + path + " --buffer_pool_size 4096 --workdir " + (dir / "x")).code, 2);
  EXPECT_EQ(hyperframes(2, "train " + (dir / "no.yaml")).code, 2);
  EXPECT_EQ(hyperframes(2, "train " + path + " --set data.train=no.tsv --workdir " + (dir / "x")).code, 4);
  EXPECT_EQ(hyperframes(2, "eval " + path + " --workdir " + (dir / "never_trained")).code, 4);
  EXPECT_EQ(hyperframes(0, "trian " + path).code, 2);
}

TEST_F(EndToEnd, DivergenceIsRejectedCountedAndEndsTheRun) {
  const Outcome o = hyperframes(3, "train " + path + " --workdir " + (dir / "n") +
                                       " --set train.max_bad_batches=2 --set optimizer.learning_rate=1e30 "
                                       "--set optimizer.name=sgd --set embedding.optimizer.learning_rate=1e30"
                                       " --set embedding.optimizer.name=sgd");
  EXPECT_EQ(o.code, 6) << o.output;
  EXPECT_NE(o.output.find("NaN or infinite"), std::string::npos) << o.output;
  EXPECT_EQ(read_json(dir / "n/summary.json")["status"], "failed");
}

// Peak RSS of a server: rows · (dim + state) · 4 bytes, the pool, and what LibTorch's and MPI's libraries take when they
// are loaded (about 150 MiB, whatever the tables).
TEST_F(EndToEnd, ServerMemoryIsItsRows) {
  if (sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) < (6L << 30)) GTEST_SKIP() << "needs 6 GiB of memory";
  const auto s = train(2, "m",
                       "--ps 1 --set features.default_buckets=460000 --set embedding.dim=16 --set "
                       "model.name=dcnv2 --buffer_pool_size 32MiB");
  double server = 0;
  for (const auto& r : s["ranks"])
    if (r["role"] == "ps") server = r["peak_rss_bytes"].get<double>();
  const double expected = 26.0 * 460000 * (16 + 16) * 4 + (32 << 20);
  EXPECT_GT(server, 0.95 * expected);
  EXPECT_LE(server, 1.15 * expected);
}

TEST_F(EndToEnd, PrintConfigAndDryRunAndOverrides) {
  const Outcome printed = hyperframes(2, "train " + path + " --print-config --set train.epochs=7",
                                      "HF_TRAIN__EPOCHS=3 HF_TRAIN__BATCH_SIZE=99");
  EXPECT_EQ(printed.code, 0);
  EXPECT_NE(printed.output.find("epochs: 7"), std::string::npos) << printed.output;
  EXPECT_NE(printed.output.find("batch_size: 99"), std::string::npos);
  const Outcome dry = hyperframes(4, "train " + path + " --dry-run --ps 2");
  EXPECT_EQ(dry.code, 0) << dry.output;
  EXPECT_NE(dry.output.find("8 of 16 shards"), std::string::npos) << dry.output;
  EXPECT_FALSE(std::filesystem::exists(dir / "runs"));
}

}  // namespace
}  // namespace hf::test
