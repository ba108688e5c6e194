// The command line as values: which subcommand, which configuration file, which overrides. Pure parsing, no training,
// no MPI, nothing printed: the caller prints on rank 0 only.
// Invariants: option names take '-' and '_' alike (values and what follows --set are left alone); flags become
// overrides in the order in which they were typed, so the later one wins.
// Threading: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "io/dataset.hpp"
#include "io/synth.hpp"

namespace hf {

enum class Subcommand : std::uint8_t { train, eval, predict, synth, convert, bench };
const char* to_string(Subcommand subcommand) noexcept;

struct BenchOptions {
  std::string name = "all";  ///< gather, pull, train, idle, all
  std::optional<std::uint64_t> rows;
  std::optional<std::uint32_t> dim;
  std::optional<std::uint32_t> repeat;
  std::optional<std::uint32_t> steps;
  std::string json;  ///< file for the results; "" = none
};

struct Options {
  Subcommand subcommand = Subcommand::train;

  // train, eval, predict, convert
  std::string config_path;
  std::vector<Override> overrides;  ///< of flags and --set; concatenate after environment_overrides()
  bool print_config = false;
  bool dry_run = false;  ///< train

  // eval, predict
  std::string checkpoint = "latest";  ///< "latest" or a path
  Split split = Split::validation;    ///< predict: test unless chosen

  std::string output;  ///< predict: file (required); convert: directory, "" = WORKDIR/packed

  SynthOptions synth;
  BenchOptions bench;
};

enum class CommandLineOutcome : std::uint8_t {
  run,      ///< do what `options` say
  help,     ///< print `text` on rank 0, exit 0
  version,  ///< print the version on rank 0, exit 0
};

struct CommandLine {
  CommandLineOutcome outcome = CommandLineOutcome::run;
  Options options;
  std::string text;  ///< help
};

/// Requires: arguments without the program's name.
/// Throws: ConfigError listing the problems; an unknown option or subcommand comes with the nearest valid
/// one.
CommandLine parse_command_line(const std::vector<std::string>& arguments);
CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace hf
