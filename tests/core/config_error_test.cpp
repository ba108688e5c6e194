// Wrong configurations: every problem in one list, each with its place.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include <unistd.h>

#include "config_test_support.hpp"

namespace hf {
namespace {

using test::error_of;
using test::kGood;
using test::set_error;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ConfigErrors, NamesThatCouldNotBeStoredOrToldApart) {
  const auto feature = [](const std::string& list) {
    return error_of("data: {format: csv, train: a.csv, csv: {label: y}}\nfeatures: {categorical: [" + list +
                    "]}\n");
  };
  EXPECT_EQ(feature("a, b"), "");
  // A feature of this name trained, and its checkpoint could not be loaded.
  EXPECT_THAT(feature("a, dense"),
              AllOf(HasSubstr("x.yaml:2: features.categorical[1]"),
                    HasSubstr("\"dense\" is reserved: the parameters of the dense network")));
  EXPECT_THAT(feature("Dense"), HasSubstr("is reserved"));
  EXPECT_THAT(feature("a.wide"), HasSubstr("\"a.wide\" is reserved: linear weights"));
  EXPECT_THAT(feature("a, A"),
              HasSubstr("duplicate feature \"A\": \"a\" differs in upper and lower case only"));
  EXPECT_THAT(feature("'a/b'"), HasSubstr("\"a/b\" contains \"/\""));
  EXPECT_EQ(feature("{name: a_b, column: a/b}"), "");
  EXPECT_THAT(feature("'..'"), HasSubstr("means a folder"));
  EXPECT_THAT(feature("' a'"), HasSubstr("begins or ends with a blank"));
  EXPECT_THAT(feature("\"a\\tb\""), HasSubstr("control character"));
  EXPECT_THAT(feature(std::string(201, 'a')), HasSubstr("expected at most 200 bytes, found 201"));
  const auto tables = [](const std::string& text) { return error_of(kGood + "tables: [" + text + "]\n"); };
  EXPECT_THAT(tables("{name: dense, rows: 10}"), HasSubstr("tables[0].name: \"dense\" is reserved"));
  EXPECT_THAT(tables("{name: t, rows: 10}, {name: T, rows: 10}"),
              HasSubstr("tables[1].name: duplicate table \"T\": \"t\" differs in upper and lower case only"));
  EXPECT_THAT(tables("{name: c1, rows: 10}"),
              HasSubstr("would have the name of the shared table \"c1\"; to use that one write table: c1"));
}

TEST(ConfigErrors, AllProblemsInOneListWithTheirLines) {
  const std::string error = error_of(
      "seed: -3\n"
      "data:\n"
      "  format: criteo\n"
      "  shufle: true\n"
      "  max_bad_rows: many\n"
      "features:\n"
      "  numeric: [I1]\n"
      "  categorical:\n"
      "    - {name: C1, tabel: x}\n"
      "    - name: C2\n"
      "      table: nowhere\n"
      "trian: {batch_size: 3}\n"
      "train:\n"
      "  batch_sze: 512\n"
      "  batch_size: 0\n"
      "model: {name: depfm}\n"
      "cluster: {ps: 1, ps_ratio: '1:3'}\n");
  EXPECT_THAT(error, HasSubstr("configuration: 10 problems\n"));
  EXPECT_THAT(error, HasSubstr("\n  x.yaml:1: seed: expected a whole number of at least 0, found \"-3\""));
  EXPECT_THAT(error, HasSubstr("\n  x.yaml:4: data.shufle: unknown key; did you mean data.shuffle?"));
  EXPECT_THAT(
      error,
      HasSubstr("\n  x.yaml:5: data.max_bad_rows: expected a whole number of at least 0, found \"many\""));
  EXPECT_THAT(error, HasSubstr("\n  x.yaml:9: features.categorical[0].tabel: unknown key; did you mean "
                               "features.categorical[0].table?"));
  EXPECT_THAT(error,
              HasSubstr("\n  x.yaml:11: features.categorical[1].table: no table \"nowhere\" in tables"));
  EXPECT_THAT(error, HasSubstr("\n  x.yaml:12: trian: unknown key; did you mean train?"));
  EXPECT_THAT(error,
              HasSubstr("\n  x.yaml:14: train.batch_sze: unknown key; did you mean train.batch_size?"));
  EXPECT_THAT(error, HasSubstr("\n  x.yaml:15: train.batch_size: expected a whole number of at least 1 "));
  EXPECT_THAT(
      error,
      AllOf(HasSubstr("\n  x.yaml:16: model.name: expected one of lr, fm, wide_deep, deepfm, dlrm, dcnv2"),
            HasSubstr("did you mean deepfm?"), HasSubstr("found \"depfm\"")));
  EXPECT_THAT(error, HasSubstr("\n  x.yaml:17: cluster.ps_ratio: cluster.ps is given too"));
}

TEST(ConfigErrors, UnknownKeySuggestions) {
  // A key of another section, a key with the other spelling, and nothing near.
  EXPECT_THAT(error_of(kGood + "batch_size: 3\n"),
              HasSubstr("x.yaml:5: batch_size: unknown key; did you mean train.batch_size?"));
  EXPECT_THAT(error_of(kGood + "data_dir: d\n"), HasSubstr("did you mean data.data_dir?"));
  EXPECT_THAT(error_of(kGood + "train: {batch-size: 3}\n"), HasSubstr("did you mean train.batch_size?"));
  EXPECT_THAT(error_of(kGood + "cluster: {qqqqqqq: 3}\n"),
              HasSubstr("unknown key; valid keys here: role, ps, ps_ratio, ps_placement"));
  EXPECT_THAT(error_of(kGood + "tables: [{name: t, row: 3}]\n"), HasSubstr("did you mean tables[0].rows?"));
  EXPECT_THAT(error_of(kGood + "optimizer: {l1: 3}\n"), HasSubstr("did you mean embedding.optimizer.l1 or"));
}

TEST(ConfigErrors, WrongTypes) {
  const auto at = [](const std::string& key, const std::string& value) { return set_error(key, value); };
  EXPECT_THAT(at("train.batch_size", "[1]"),
              HasSubstr("expected a whole number of at least 1 and at most 16777216, found a list"));
  EXPECT_THAT(at("train.batch_size", "1.5"), HasSubstr("found \"1.5\""));
  EXPECT_THAT(at("train.batch_size", ""), HasSubstr("found nothing"));
  EXPECT_THAT(at("train.batch_size", "99999999999999999999999"), HasSubstr("expected a whole number"));
  EXPECT_THAT(at("seed", "18446744073709551616"), HasSubstr("not above 18446744073709551615"));
  EXPECT_THAT(at("train.log_every_seconds", "nan"), HasSubstr("expected a number above 0, found \"nan\""));
  EXPECT_THAT(at("train.log_every_seconds", ".inf"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(at("train.log_every_seconds", "1e999"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(at("embedding.init_scale", "nan"), HasSubstr("expected a number of at least 0"));
  EXPECT_THAT(at("train.pipeline", "maybe"), HasSubstr("expected true or false, found \"maybe\""));
  EXPECT_THAT(at("train.staleness_bound", "-1"),
              HasSubstr("expected a whole number of at least 0 or inf, found \"-1\""));
  EXPECT_THAT(at("train", "3"), HasSubstr("--set: train: expected a mapping (batch_size, epochs"));
  EXPECT_THAT(at("tables", "{name: x}"), HasSubstr("tables: expected a list of mappings, found a mapping"));
  EXPECT_THAT(at("tables", "[5]"), HasSubstr("tables[0]: expected a mapping (name, rows"));
  EXPECT_THAT(at("model.hidden", "[4, 0]"),
              HasSubstr("model.hidden[1]: expected a whole number of at least 1"));
  EXPECT_THAT(at("model.hidden", "deep"), HasSubstr("or a list of such, found \"deep\""));
  EXPECT_THAT(at("data.csv.missing", "[NA, null]"),
              HasSubstr("data.csv.missing[1]: expected a text (in quotes"));
  EXPECT_THAT(at("workdir", "{a: b}"), HasSubstr("workdir: expected a text, found a mapping"));
  EXPECT_THAT(at("cluster.buffer_pool_size", "8 QB"), HasSubstr("expected a size like 64MiB or 8GB"));
  EXPECT_THAT(at("cluster.buffer_pool_size", "1KB"), HasSubstr("of at least 65536"));
  for (const char* bad : {"1:0", "0:1", "1", "1:", ":1", "1:2:3", "a:b", "-1:2", "[1, 2]"})
    EXPECT_THAT(at("cluster.ps_ratio", bad), HasSubstr("expected servers:workers")) << bad;
  EXPECT_THAT(at("optimizer.name", "ftrl"), HasSubstr("expected one of sgd, adagrad, adam, found \"ftrl\""));
  EXPECT_THAT(at("optimizer.learning_rate", "0"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(at("model.dropout", "1"),
              HasSubstr("expected a number of at least 0 and below 1, found \"1\""));
  EXPECT_THAT(at("cluster.num_shards", "0"), HasSubstr("of at least 1"));
  EXPECT_THAT(at("cluster.ps", "0"), HasSubstr("of at least 1"));
}

TEST(ConfigErrors, ImpossibleCombinations) {
  const auto with = [](const std::string& more) { return error_of(kGood + more); };
  const auto data = [](const std::string& more) {
    return error_of("features: {numeric: [a]}\ndata: {" + more + "}\n");
  };
  EXPECT_THAT(with("cluster: {role: ps, ps: 2}\n"),
              HasSubstr("x.yaml:5: cluster.role: given together with cluster.ps"));
  EXPECT_THAT(set_error("data.split.by", "column"),
              AllOf(HasSubstr("--set: data.split.by: needs validation_values"),
                    HasSubstr("data.split.column: missing")));
  EXPECT_THAT(set_error("data.split.by", "ratio"), HasSubstr("needs validation_ratio or test_ratio"));
  EXPECT_THAT(set_error("data.split", "{by: ratio, validation_ratio: 1}"),
              HasSubstr("expected a number of at least 0 and below 1"));
  EXPECT_THAT(set_error("data.split", "{by: ratio, validation_ratio: -0.1}"),
              HasSubstr("below 1, found \"-0.1\""));
  EXPECT_THAT(set_error("data.split", "{by: ratio, validation_ratio: 0.5, test_ratio: 0.5}"),
              HasSubstr("must be below 1"));
  EXPECT_THAT(set_error("data.split", "{validation_ratio: 0.5}"),
              HasSubstr("with data.split.by: ratio only"));
  EXPECT_THAT(set_error("data.split", "{by: column, column: C1, validation_values: [a], test_values: [a]}"),
              HasSubstr("\"a\" is in validation_values too"));
  EXPECT_THAT(data("format: csv, validation: v, split: {by: ratio, validation_ratio: 0.5}"),
              HasSubstr("data.validation: files, although"));
  EXPECT_THAT(set_error("data.shuffle", "true"),
              AllOf(HasSubstr("data.shuffle"), HasSubstr("hyperframes convert")));
  EXPECT_THAT(with("tables: [{name: t}]\n"), HasSubstr("tables[0].rows: missing"));
  EXPECT_THAT(with("tables: [{name: t, kind: dynamic, rows: 4}]\n"),
              HasSubstr("a dynamic table has no fixed number"));
  EXPECT_THAT(with("tables: [{name: t, rows: 4}, {name: t, rows: 4}]\n"),
              HasSubstr("tables[1].name: duplicate table \"t\""));
  EXPECT_THAT(with("tables: [{name: C1, rows: 4}]\n"), HasSubstr("to use that one write table: C1"));
  EXPECT_THAT(with("optimizer: {decay: linear}\n"), HasSubstr("optimizer.decay_steps: missing"));
  EXPECT_THAT(with("optimizer: {decay: linear, decay_steps: 5, warmup_steps: 5}\n"),
              HasSubstr("must be above warmup_steps"));
  EXPECT_THAT(with("optimizer: {decay: exponential, decay_steps: 5}\n"), HasSubstr("needs a factor above 0"));
  EXPECT_THAT(error_of("seed: 1\n"), HasSubstr("x.yaml:1: features: missing"));
  EXPECT_THAT(data("format: csv, csv: {header: false}"), HasSubstr("data.csv.columns: missing"));
  EXPECT_THAT(data("format: csv, csv: {columns: [a]}"), HasSubstr("the names come from the header"));
  EXPECT_THAT(data("format: csv, csv: {header: false, columns: [ab, abb]}"),
              HasSubstr("features.numeric[0].name: no column \"a\" in data.csv.columns; did you mean ab?"));
  EXPECT_THAT(data("format: csv, csv: {header: false, columns: [a, a], label: y}"),
              AllOf(HasSubstr("duplicate name \"a\""), HasSubstr("data.csv.label: no column \"y\"")));
  EXPECT_THAT(data("format: csv, csv: {delimiter: ab}"),
              HasSubstr("data.csv.delimiter: expected one character"));
  EXPECT_THAT(data("format: csv, csv: {positive: [x], negative: [x]}"),
              HasSubstr("\"x\" is in positive too"));
  EXPECT_THAT(data("format: csv, csv: {positive: []}"), HasSubstr("data.csv.positive: empty"));
  EXPECT_THAT(data("format: criteo"), HasSubstr("no numeric column \"a\" in format criteo"));
  EXPECT_THAT(data("format: libsvm"), HasSubstr("has categorical features only"));
  EXPECT_THAT(error_of("data: {format: libfm}\nfeatures: {categorical: [a, b]}\n"),
              HasSubstr("exactly one feature, found 2"));
}

TEST(ConfigErrors, Features) {
  const auto numeric = [](const std::string& f) {
    return error_of("data: {format: csv}\nfeatures: {numeric: [" + f + "]}\n");
  };
  const auto category = [](const std::string& f) {
    return error_of("data: {format: csv}\ntables: [{name: user, rows: 4}]\nfeatures: {categorical: [" + f +
                    "]}\n");
  };
  EXPECT_THAT(numeric("a, a"), HasSubstr("features.numeric[1].name: duplicate feature \"a\""));
  EXPECT_THAT(numeric("{column: a}"), HasSubstr("features.numeric[0].name: missing"));
  EXPECT_THAT(numeric("{name: a, missing_indicator: true}, a.missing"),
              HasSubstr("duplicate feature \"a.missing\""));
  EXPECT_THAT(numeric("{name: a, mean: 1, stddev: 2}"), HasSubstr("with transform: standardize only"));
  EXPECT_THAT(numeric("{name: a, transform: standardize, mean: 1}"), HasSubstr("[0].stddev: missing"));
  EXPECT_THAT(numeric("{name: a, transform: standardize, mean: 1, stddev: 0}"),
              HasSubstr("expected a number above 0"));
  EXPECT_THAT(numeric("{name: a, transform: bucketize}"), HasSubstr("boundaries: missing"));
  EXPECT_THAT(numeric("{name: a, transform: bucketize, boundaries: [1, 1]}"),
              HasSubstr("must rise strictly"));
  EXPECT_THAT(numeric("{name: a, boundaries: [1]}"), HasSubstr("with transform: bucketize only"));
  EXPECT_THAT(numeric("{range: a1..b2}"), HasSubstr("features.numeric.range: expected \"FIRST..LAST\""));
  EXPECT_THAT(numeric("{range: a2..a1}"), HasSubstr("expected \"FIRST..LAST\""));
  EXPECT_THAT(numeric("{range: a1..a99999999}"), HasSubstr("at most 10000 names"));
  EXPECT_THAT(numeric("{range: a1..a2, name: a}"), HasSubstr("together with range"));
  EXPECT_THAT(category("{name: c, encoding: vocabulary, table: user}"),
              HasSubstr("cannot use a shared table"));
  EXPECT_THAT(category("{name: c, encoding: vocabulary, buckets: 5}"), HasSubstr("the vocabulary decides"));
  EXPECT_THAT(category("{name: c, min_count: 5}"), HasSubstr("with encoding: vocabulary only"));
  EXPECT_THAT(category("{name: c, table: user, dim: 5}"), HasSubstr("belongs to tables[].dim"));
  EXPECT_THAT(category("{name: c, table: user, buckets: 5}"), HasSubstr("the shared table decides"));
  EXPECT_THAT(category("{name: c, table: usr}"), HasSubstr("did you mean user?"));
  EXPECT_THAT(category("{name: c, derive: hour}"),
              HasSubstr("expected \"\", hour_of_day, day_of_week or day"));
  EXPECT_THAT(category("{name: c, buckets: 1}"), HasSubstr("at least 2"));
  EXPECT_THAT(
      error_of("data: {format: csv}\ntables: [{name: t, rows: 3}]\n"
               "features: {numeric: [{name: a, transform: bucketize, boundaries: [1, 2], table: t}]}\n"),
      HasSubstr("needs 4 rows"));
}

TEST(ConfigErrors, OneProblemOfARangeIsReportedOnce) {
  const std::string error =
      error_of("data: {format: criteo}\nfeatures:\n  categorical:\n    - {range: C1..C26, encodng: hash}\n");
  EXPECT_THAT(
      error,
      HasSubstr("configuration: 1 problem\n  x.yaml:4: features.categorical[C1..C26].encodng: unknown key"));
}

TEST(ConfigErrors, YamlItself) {
  EXPECT_THAT(error_of("seed: 1\ntrain: {a: [1\n"), HasSubstr("YAML syntax"));
  EXPECT_THAT(error_of("seed: 1\n\ttrain: 3\n"), HasSubstr("x.yaml:2: YAML syntax"));
  EXPECT_THAT(error_of(kGood + "train: {epochs: 1}\ntrain: {epochs: 2}\n"),
              HasSubstr("x.yaml:6: train: duplicate key, first given at x.yaml:5"));
  EXPECT_THAT(error_of(kGood + "---\nseed: 3\n"), HasSubstr("more than one YAML document"));
  EXPECT_THAT(error_of(""), HasSubstr("x.yaml:1: the configuration is empty"));
  EXPECT_THAT(error_of("# nothing\n"), HasSubstr("the configuration is empty"));
  EXPECT_THAT(error_of("- a\n- b\n"), HasSubstr("x.yaml:1: expected a mapping of keys, found a list"));
  EXPECT_THAT(error_of("hello"), HasSubstr("found \"hello\""));
  EXPECT_THAT(error_of(kGood + "? [a, b]\n: c\n"), HasSubstr("a key must be a text, found a list"));
  EXPECT_THAT(error_of(kGood + "tables: &t [*t]\n"), HasSubstr("an alias inside of what it stands for"));
  EXPECT_THAT(error_of("seed: 1\nworkdir: a\x04z\n"), HasSubstr("x.yaml:2: control byte 4"));
  EXPECT_THAT(error_of("seed: 1\nworkdir: \xff\n"), HasSubstr("x.yaml:2: not UTF-8"));
  EXPECT_THAT(error_of(std::string("seed: 1\0", 8)), HasSubstr("control byte 0"));
  std::string deep = "tables: ";
  for (int i = 0; i < 5000; ++i) deep += "[";
  EXPECT_NE(error_of(deep), "");
}

TEST(ConfigErrors, AliasBombEnds) {
  std::string yaml = kGood + "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string one = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + one;
    for (int k = 0; k < 9; ++k) yaml += ", " + one;
    yaml += "]\n";
  }
  EXPECT_THAT(error_of(yaml), HasSubstr("too large or too deeply nested"));
}

TEST(ConfigErrors, Files) {
  namespace fs = std::filesystem;
  const auto load_error = [](const std::string& path) -> std::string {
    try {
      load_config(path, {});
    } catch (const ConfigError& e) {
      EXPECT_EQ(e.exit_code(), ExitCode::config);
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(load_error("/nonexistent/x.yaml"),
              HasSubstr("/nonexistent/x.yaml: cannot be read: No such file"));
  EXPECT_THAT(load_error("/tmp"), HasSubstr("/tmp: is a directory"));
  EXPECT_THAT(load_error("/dev/zero"), HasSubstr("longer than"));
  EXPECT_THAT(load_error("/dev/null"), HasSubstr("/dev/null:1: the configuration is empty"));
  const fs::path path = fs::temp_directory_path() / ("hf_config_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(path) << "seed: 1\nsed: 2\n";
  EXPECT_THAT(load_error(path.string()),
              HasSubstr(path.string() + ":2: sed: unknown key; did you mean seed?"));
  fs::remove(path);
}

TEST(ConfigErrors, GarbageNeverCrashes) {
  std::mt19937 random(1);
  const std::string alphabet = "{}[]:,-#&*!|>'\"%@`? \n\n\t\rab01~<=.\\";
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const std::size_t size = random() % 200;
    switch (round % 4) {
      case 0:  // bytes
        while (text.size() < size) text += static_cast<char>(random() & 0xff);
        break;
      case 1:  // what YAML gives a meaning
        while (text.size() < size) text += alphabet[random() % alphabet.size()];
        break;
      default:  // a good text with a few bytes changed, cut off, or doubled
        text = kGood + "train: {batch_size: 5}\ntables: [{name: a, rows: 4, optimizer: &o {name: adam}}]\n";
        for (std::size_t i = 0; i < 1 + random() % 4; ++i) {
          const std::size_t at = random() % text.size();
          if (round % 4 == 2)
            text[at] = alphabet[random() % alphabet.size()];
          else if (random() % 2 == 0)
            text.erase(at, random() % 10);
          else
            text.insert(at, text.substr(random() % text.size(), random() % 30));
        }
    }
    try {
      const Config c = parse_config(text, "x.yaml", {});
      EXPECT_EQ(print_config(parse_config(print_config(c), "x.yaml", {})), print_config(c)) << text;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), HasSubstr("x.yaml")) << text;
    }
  }
}

TEST(ConfigErrors, LargeGarbageIsQuick) {
  const auto start = std::chrono::steady_clock::now();
  for (const char* part : {"[", "{", "a: ", "- ", "? ", "&a ", "\"", "a\n", "a: b\n", "!", "[a, ", "{a: {"}) {
    std::string text;
    while (text.size() < 50000) text += part;
    EXPECT_NE(error_of(text), "") << part;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace hf
