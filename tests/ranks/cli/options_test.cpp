#include "ranks/cli/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace hf {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Options parse(const std::vector<std::string>& arguments) {
  const CommandLine line = parse_command_line(arguments);
  EXPECT_EQ(line.outcome, CommandLineOutcome::run);
  return line.options;
}

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    parse_command_line(arguments);
  } catch (const ConfigError& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::config);
    return e.what();
  }
  return "";
}

const std::string kYaml = "data: {format: criteo}\nfeatures: {numeric: [I1]}\n";

Config config_of(const std::vector<std::string>& arguments, const std::string& more = "") {
  return parse_config(kYaml + more, "x.yaml", parse(arguments).overrides);
}

TEST(CliOptions, Train) {
  const Options o = parse({"train", "c.yaml", "--dry-run", "--print-config"});
  EXPECT_EQ(o.subcommand, Subcommand::train);
  EXPECT_EQ(o.config_path, "c.yaml");
  EXPECT_TRUE(o.dry_run);
  EXPECT_TRUE(o.print_config);
  EXPECT_TRUE(o.overrides.empty());
}

TEST(CliOptions, FamiliarNamesSetKeysInBothSpellings) {
  for (const char separator : {'-', '_'}) {
    std::vector<std::string> arguments = {"train",
                                          "c.yaml",
                                          "--num_shards",
                                          "8",
                                          "--buffer_pool_size",
                                          "8GB",
                                          "--batch_size=5",
                                          "--ps_ratio",
                                          "2:3",
                                          "--data_dir",
                                          "/d_a-t",
                                          "--checkpoint_dir",
                                          "/c",
                                          "--workdir",
                                          "/w_d-x",
                                          "--seed",
                                          "3",
                                          "--staleness_bound",
                                          "inf",
                                          "--epochs",
                                          "4",
                                          "--wait_timeout",
                                          "2.5",
                                          "--ps_placement",
                                          "packed",
                                          "--transport",
                                          "shm"};
    for (std::string& a : arguments)
      if (a.starts_with("--"))
        for (std::size_t i = 2; i < a.size(); ++i)
          if (a[i] == '_') a[i] = separator;
    const Config c = config_of(arguments);
    EXPECT_EQ(c.cluster.num_shards, 8U);
    EXPECT_EQ(c.cluster.buffer_pool_size, 8ULL << 30);
    EXPECT_EQ(c.train.batch_size, 5U);
    EXPECT_EQ(c.cluster.ps_ratio, (std::pair{2U, 3U}));
    EXPECT_EQ(c.data.data_dir, "/d_a-t");
    EXPECT_EQ(c.checkpoint_dir, "/c");
    EXPECT_EQ(c.workdir, "/w_d-x");
    EXPECT_EQ(c.seed, 3U);
    EXPECT_EQ(c.train.staleness_bound, kStalenessInfinite);
    EXPECT_EQ(c.train.epochs, 4U);
    EXPECT_EQ(c.cluster.wait_timeout_seconds, 2.5);
    EXPECT_EQ(c.cluster.ps_placement, Placement::packed);
    EXPECT_EQ(c.cluster.transport, Transport::shm);
  }
}

TEST(CliOptions, FlagsMayComeBeforeTheFile) {
  const Options o = parse({"train", "--set", "train.epochs=3", "--batch_size", "9", "c.yaml"});
  EXPECT_EQ(o.config_path, "c.yaml");
  ASSERT_EQ(o.overrides.size(), 2U);
}

TEST(CliOptions, SetTextIsLeftAlone) {
  const Options o =
      parse({"train", "c.yaml", "--set", "a_b.c-d=--x_y=z", "--set", "--odd_key=1", "--set=e_f=g_h"});
  ASSERT_EQ(o.overrides.size(), 3U);
  EXPECT_EQ(o.overrides[0].key, "a_b.c-d");
  EXPECT_EQ(o.overrides[0].value, "--x_y=z");
  EXPECT_EQ(o.overrides[0].origin, "--set");
  EXPECT_EQ(o.overrides[1].key, "--odd_key");
  EXPECT_EQ(o.overrides[2].key, "e_f");
  EXPECT_EQ(o.overrides[2].value, "g_h");
}

TEST(CliOptions, ValuesOfFlagsAreTextsNotYaml) {
  const Config c = config_of({"train", "c.yaml", "--workdir", "/it's: [a] #b"});
  EXPECT_EQ(c.workdir, "/it's: [a] #b");
}

TEST(CliOptions, TheLaterOneWins) {
  EXPECT_EQ(config_of({"train", "c", "--batch_size", "1", "--set", "train.batch_size=2"}).train.batch_size,
            2U);
  EXPECT_EQ(config_of({"train", "c", "--set", "train.batch_size=2", "--batch_size", "1"}).train.batch_size,
            1U);
  EXPECT_EQ(
      config_of({"train", "c", "--batch_size", "1", "--seed", "9", "--batch-size", "3"}).train.batch_size,
      3U);
}

TEST(CliOptions, FlagOverEnvironmentOverFile) {
  const char* const environment[] = {"HF_TRAIN__BATCH_SIZE=10", "HF_TRAIN__EPOCHS=20", nullptr};
  std::vector<Override> overrides = environment_overrides(environment);
  for (const Override& o : parse({"train", "c", "--batch_size", "100"}).overrides) overrides.push_back(o);
  const Config c =
      parse_config(kYaml + "train: {batch_size: 1, epochs: 2, max_steps: 3}\n", "x.yaml", overrides);
  EXPECT_EQ(c.train.batch_size, 100U);
  EXPECT_EQ(c.train.epochs, 20U);
  EXPECT_EQ(c.train.max_steps, 3U);
}

TEST(CliOptions, AChoiceOfRolesReplacesTheFilesChoice) {
  const std::string file = "cluster: {ps_ratio: '1:3'}\n";
  EXPECT_EQ(config_of({"train", "c", "--ps", "2"}, file).cluster.ps, 2U);
  EXPECT_FALSE(config_of({"train", "c", "--ps", "2"}, file).cluster.ps_ratio.has_value());
  EXPECT_EQ(config_of({"train", "c", "--role", "ps"}, file).cluster.role, RoleChoice::ps);
  EXPECT_EQ(config_of({"train", "c", "--ps-ratio", "1:2"}, "cluster: {ps: 4}\n").cluster.ps_ratio,
            (std::pair{1U, 2U}));
  // Two choices on the same command line are an error.
  EXPECT_THROW(config_of({"train", "c", "--ps", "2", "--ps-ratio", "1:2"}), ConfigError);
  EXPECT_THROW(config_of({"train", "c", "--role", "ps", "--ps", "2"}), ConfigError);
}

TEST(CliOptions, Rdma) {
  EXPECT_EQ(config_of({"train", "c", "--rdma"}).cluster.transport, Transport::mpi);
  EXPECT_EQ(config_of({"train", "c", "--rdma", "--transport", "mpi"}).cluster.transport, Transport::mpi);
  EXPECT_EQ(config_of({"train", "c", "--rdma", "--transport", "auto"}).cluster.transport, Transport::mpi);
  EXPECT_EQ(config_of({"train", "c", "--transport", "auto", "--rdma"}, "cluster: {transport: shm}\n")
                .cluster.transport,
            Transport::mpi);
  EXPECT_THAT(error_of({"train", "c", "--rdma", "--transport", "shm"}),
              HasSubstr("--rdma means --transport mpi; it cannot be combined with --transport shm"));
}

TEST(CliOptions, WrongValuesAreReportedWithTheFlag) {
  const Options o = parse({"train", "c", "--batch_size", "many", "--transport", "smh", "--seed", "-4"});
  try {
    parse_config(kYaml, "x.yaml", o.overrides);
    FAIL() << "accepted";
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("3 problems"));
    EXPECT_THAT(e.what(), HasSubstr("--batch-size: train.batch_size: expected a whole number"));
    EXPECT_THAT(
        e.what(),
        HasSubstr("--transport: cluster.transport: expected one of auto, shm, mpi (did you mean shm?)"));
    EXPECT_THAT(e.what(), HasSubstr("--seed: seed: expected a whole number of at least 0, found \"-4\""));
  }
}

TEST(CliOptions, EvalAndPredict) {
  Options o = parse({"eval", "c.yaml"});
  EXPECT_EQ(o.subcommand, Subcommand::eval);
  EXPECT_EQ(o.checkpoint, "latest");
  EXPECT_EQ(o.split, Split::validation);
  o = parse({"eval", "c.yaml", "--split", "train", "--checkpoint", "dir_a"});
  EXPECT_EQ(o.split, Split::train);
  EXPECT_EQ(o.checkpoint, "dir_a");
  o = parse({"predict", "c.yaml", "--output", "scores_x.txt"});
  EXPECT_EQ(o.subcommand, Subcommand::predict);
  EXPECT_EQ(o.split, Split::test);
  EXPECT_EQ(o.output, "scores_x.txt");
  EXPECT_THAT(error_of({"predict", "c.yaml"}), HasSubstr("predict needs --output FILE"));
  EXPECT_TRUE(parse({"predict", "c.yaml", "--print-config"}).print_config);
  EXPECT_THAT(error_of({"eval", "c.yaml", "--split", "dev"}), HasSubstr("--split"));
  EXPECT_THAT(error_of({"eval", "c.yaml", "--dry-run"}), HasSubstr("unknown option --dry-run"));
}

TEST(CliOptions, SynthConvertBench) {
  Options o = parse({"synth", "--output", "d", "--rows", "10", "--validation_rows", "3", "--seed", "7",
                     "--vocabulary", "20", "--zipf", "1.5", "--files", "2", "--gzip"});
  EXPECT_EQ(o.subcommand, Subcommand::synth);
  EXPECT_EQ(o.synth.output_dir, "d");
  EXPECT_EQ(o.synth.rows, 10U);
  EXPECT_EQ(o.synth.validation_rows, 3U);
  EXPECT_EQ(o.synth.seed, 7U);
  EXPECT_THAT(o.synth.vocabulary, testing::ElementsAre(20U));
  EXPECT_EQ(o.synth.zipf, 1.5);
  EXPECT_EQ(o.synth.files, 2U);
  EXPECT_TRUE(o.synth.gzip);
  EXPECT_TRUE(parse({"synth", "--output", "d"}).synth.vocabulary.empty());
  EXPECT_THAT(error_of({"synth", "--rows", "3"}), HasSubstr("--output"));
  EXPECT_THAT(error_of({"synth", "--output", "d", "--rows", "0", "--zipf", "nan"}),
              AllOf(HasSubstr("--rows: expected at least 1"), HasSubstr("--zipf: expected a number")));
  EXPECT_THAT(error_of({"synth", "--output", "d", "--rows", "-5"}), HasSubstr("--rows"));
  EXPECT_THAT(error_of({"synth", "--output", "d", "--rows", "x"}), HasSubstr("--rows"));

  o = parse({"convert", "c.yaml", "--output", "o_d", "--data_dir", "x"});
  EXPECT_EQ(o.subcommand, Subcommand::convert);
  EXPECT_EQ(o.output, "o_d");
  EXPECT_EQ(o.overrides.size(), 1U);

  EXPECT_EQ(parse({"bench"}).bench.name, "all");
  o = parse({"bench", "pull", "--rows", "30", "--dim", "4", "--repeat", "5", "--json", "f_g"});
  EXPECT_EQ(o.bench.name, "pull");
  EXPECT_EQ(o.bench.rows, 30U);
  EXPECT_EQ(o.bench.dim, 4U);
  EXPECT_EQ(o.bench.repeat, 5U);
  EXPECT_EQ(o.bench.json, "f_g");
  EXPECT_THAT(error_of({"bench", "pul"}), HasSubstr("pull"));
  EXPECT_THAT(error_of({"bench", "--dim", "0"}), HasSubstr("--dim: expected at least 1"));
}

TEST(CliOptions, UnknownOptionsAndArguments) {
  EXPECT_THAT(error_of({"train", "c.yaml", "--batch_sze", "5"}),
              AllOf(HasSubstr("unknown option --batch-sze; did you mean --batch-size?"),
                    Not(HasSubstr("argument")), HasSubstr("hyperframes train --help")));
  EXPECT_THAT(error_of({"train", "--batch_sze", "5", "c.yaml"}), HasSubstr("did you mean --batch-size?"));
  EXPECT_THAT(error_of({"train", "c.yaml", "--batch_sze=5", "--wrkdir=x"}),
              AllOf(HasSubstr("did you mean --batch-size?"), HasSubstr("did you mean --workdir?")));
  EXPECT_THAT(error_of({"train", "c.yaml", "--qqqqqqqq"}),
              AllOf(HasSubstr("unknown option --qqqqqqqq"), Not(HasSubstr("mean"))));
  EXPECT_THAT(error_of({"train", "c.yaml", "-z"}), HasSubstr("unknown option -z"));
  EXPECT_THAT(error_of({"train", "c.yaml", "d.yaml"}), HasSubstr("unexpected argument \"d.yaml\""));
  EXPECT_THAT(error_of({"train"}), HasSubstr("CONFIG"));
  EXPECT_THAT(error_of({"train", "--sed", "4"}), HasSubstr("did you mean --set?"));
  EXPECT_THAT(error_of({"train", ""}), HasSubstr("CONFIG: expected a file"));
  EXPECT_THAT(error_of({"train", "c.yaml", "--batch_size"}), HasSubstr("--batch-size"));
  EXPECT_THAT(error_of({"train", "c.yaml", "--set", "novalue"}), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(error_of({"train", "c.yaml", "--set", "=1"}), HasSubstr("expected KEY=VALUE"));
  EXPECT_THAT(error_of({"trian", "c.yaml"}), HasSubstr("unknown subcommand \"trian\"; did you mean train?"));
  EXPECT_THAT(error_of({"zzzzzz"}), HasSubstr("expected one of train, eval, predict, synth, convert, bench"));
  EXPECT_THAT(error_of({}), HasSubstr("no subcommand"));
  EXPECT_THAT(error_of({"--versoin"}), HasSubstr("did you mean --version?"));
  EXPECT_NE(error_of({"--version", "--nonsense"}), "x");  // no crash, whichever of both it is
}

TEST(CliOptions, HelpAndVersion) {
  CommandLine line = parse_command_line({"--version"});
  EXPECT_EQ(line.outcome, CommandLineOutcome::version);
  line = parse_command_line({"--help"});
  EXPECT_EQ(line.outcome, CommandLineOutcome::help);
  for (const char* word :
       {"train", "eval", "predict", "synth", "convert", "bench", "Exit codes", "70", "--version"})
    EXPECT_THAT(line.text, HasSubstr(word));
  line = parse_command_line({"train", "--help"});
  EXPECT_EQ(line.outcome, CommandLineOutcome::help);
  for (const char* word :
       {"--num-shards", "--set", "--rdma", "--staleness-bound", "cluster.num_shards", "Exit codes"})
    EXPECT_THAT(line.text, HasSubstr(word));
}

TEST(CliOptions, ArgcArgv) {
  const char* const argv[] = {"hyperframes", "bench", "idle"};
  EXPECT_EQ(parse_command_line(3, argv).options.bench.name, "idle");
  EXPECT_THROW(parse_command_line(0, argv), ConfigError);
}

}  // namespace
}  // namespace hf
