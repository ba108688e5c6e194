#include "ranks/cli/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>

#include "comm/abort.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "io/convert.hpp"
#include "io/synth.hpp"
#include "ranks/cli/bench.hpp"
#include "ranks/cli/options.hpp"
#include "ranks/cli/run.hpp"
#include "ranks/cli/version.hpp"

extern char** environ;

namespace hf {
namespace {

/// The rank that the launcher gave this process, before MPI is started; 0 without a launcher.
int launcher_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 0;
}

std::vector<Override> all_overrides(const Options& options) {
  std::vector<Override> overrides = environment_overrides(environ);
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  return overrides;
}

int run_synth(const SynthOptions& options) {
  const SynthResult r = synthesize(options);
  std::cout << "wrote " << format_count(r.train.rows) << " training and " << format_count(r.validation.rows)
            << " validation rows (" << format_bytes(static_cast<double>(r.bytes)) << ") to "
            << options.output_dir << " in " << format_seconds(r.seconds) << "\n"
            << "Bayes AUC of the validation rows " << r.validation.auc << ", logloss " << r.validation.logloss
            << " (" << r.truth_file << ")" << std::endl;
  return 0;
}

int run_convert(const Options& options) {
  const Config config = load_config(options.config_path, all_overrides(options));
  const std::string output = options.output.empty() ? config.workdir + "/packed" : options.output;
  const ConvertResult r = convert(config, output, [](const std::string& stage, std::uint64_t rows) {
    spdlog::info("{}: {} rows", stage, format_count(rows));
  });
  for (const ConvertedSplit& s : r.splits)
    std::cout << to_string(s.split) << ": " << format_count(s.rows) << " rows, "
              << format_bytes(static_cast<double>(s.bytes)) << "  " << s.file << "\n";
  if (r.bad_rows > 0) {
    std::cout << format_count(r.bad_rows) << " malformed rows were left out; the first:\n";
    for (const BadRow& b : r.first_bad_rows)
      std::cout << "  " << b.file << ":" << b.line << ": " << b.reason << "\n";
  }
  std::cout << "converted " << format_count(r.rows) << " rows in " << format_seconds(r.seconds) << std::endl;
  return 0;
}

/// The benchmarks make their own data: what they take from a configuration are the sections cluster and train.
int run_bench_command(const Options& options) {
  constexpr const char* kBase = "data: {train: [none]}\nfeatures: {categorical: [C1]}\n";
  const Config config = parse_config(kBase, "bench", all_overrides(options));
  const BenchOptions& o = options.bench;
  BenchRequest r;
  r.name = o.name;
  if (o.rows) r.rows = *o.rows;
  if (o.dim) r.dim = *o.dim;
  if (o.repeat) r.repeat = *o.repeat;
  if (o.steps) r.steps = *o.steps;
  r.json = o.json;
  r.cluster = config.cluster;
  r.threads = config.train.threads;
  r.staleness_bound = config.train.staleness_bound;
  return run_bench(r);
}

int run(const Options& options) {
  RunRequest request{.config_path = options.config_path,
                     .overrides = {},
                     .checkpoint = options.checkpoint,
                     .split = options.split,
                     .output = options.output};
  const bool has_config = options.subcommand != Subcommand::synth && options.subcommand != Subcommand::bench;
  if (has_config) request.overrides = all_overrides(options);
  if (has_config && options.print_config) {
    const std::string text = print_config(load_config(options.config_path, request.overrides));
    if (launcher_rank() == 0) std::cout << text << std::flush;
    return 0;
  }
  switch (options.subcommand) {
    case Subcommand::train:
      return options.dry_run ? run_dry(request) : run_train(request);
    case Subcommand::eval:
      return run_eval(request);
    case Subcommand::predict:
      return run_predict(request);
    case Subcommand::synth:
      return run_synth(options.synth);
    case Subcommand::convert:
      return run_convert(options);
    case Subcommand::bench:
      return run_bench_command(options);
  }
  return static_cast<int>(ExitCode::bug);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  // A rank's output is a pipe: what a killed rank printed must not be lost.
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  init_log(-1, "");
  try {
    const CommandLine line = parse_command_line(argc, argv);
    if (line.outcome == CommandLineOutcome::run) return run(line.options);
    if (launcher_rank() == 0)
      std::cout << (line.outcome == CommandLineOutcome::version ? version_text() : line.text) << std::flush;
    return 0;
  } catch (const std::exception& e) {
    // Before MPI is up all ranks see the same command line and files: one of them speaks.
    if (launcher_rank() == 0) std::cerr << "hyperframes: " << e.what() << std::endl;
    return exit_code_of(e);
  }
}

}  // namespace hf
