#include "ranks/cli/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/suggest.hpp"

namespace hf {
namespace {

constexpr std::array kSubcommands = {
    std::pair{"train", Subcommand::train},     std::pair{"eval", Subcommand::eval},
    std::pair{"predict", Subcommand::predict}, std::pair{"synth", Subcommand::synth},
    std::pair{"convert", Subcommand::convert}, std::pair{"bench", Subcommand::bench}};

constexpr const char* kFooter =
    "\nOption names take '-' and '_' alike. A configuration key comes from, in this order: flag, "
    "environment\n"
    "(HF_TRAIN__BATCH_SIZE=512 means train.batch_size), configuration file, default.\n"
    "\nExit codes:\n"
    "  0   done\n"
    "  2   configuration: a file, flag or environment variable is wrong\n"
    "  3   data: more malformed rows than data.max_bad_rows\n"
    "  4   io: a file cannot be read or written, or has the wrong form\n"
    "  5   transport: MPI failed, or a peer did not answer in time\n"
    "  6   too many failures, for instance rejected batches\n"
    "  70  a bug in this program\n";

/// A flag that stands for a key of the configuration.
struct KeyFlag {
  const char* flag;
  const char* key;
  const char* type;
  const char* help;
};
constexpr std::array kKeyFlags = {
    KeyFlag{"--role", "cluster.role", "ROLE", "Role of this rank: auto, ps, worker or hybrid"},
    KeyFlag{"--ps", "cluster.ps", "N", "Number of servers"},
    KeyFlag{"--ps-ratio", "cluster.ps_ratio", "P:W", "Servers to workers, for instance 1:3"},
    KeyFlag{"--ps-placement", "cluster.ps_placement", "HOW", "Servers spread (over the nodes) or packed"},
    KeyFlag{"--num-shards", "cluster.num_shards", "N", "Shards of the parameters, many more than servers"},
    KeyFlag{"--transport", "cluster.transport", "NAME", "Transport: auto, shm or mpi"},
    KeyFlag{"--buffer-pool-size", "cluster.buffer_pool_size", "SIZE",
            "Registered memory of each rank, for instance 8GB"},
    KeyFlag{"--wait-timeout", "cluster.wait_timeout_seconds", "SECONDS", "Longest wait for a peer"},
    KeyFlag{"--staleness-bound", "train.staleness_bound", "N",
            "Steps a worker may be ahead of the slowest; 0 or inf"},
    KeyFlag{"--batch-size", "train.batch_size", "N", "Rows per worker and step"},
    KeyFlag{"--epochs", "train.epochs", "N", "Passes over the training rows"},
    KeyFlag{"--seed", "seed", "N", "Seed of initial values, shuffling and dropout"},
    KeyFlag{"--workdir", "workdir", "DIR", "Where metrics, summary and results go"},
    KeyFlag{"--checkpoint-dir", "checkpoint_dir", "DIR", "Checkpoints (default: WORKDIR/checkpoints)"},
    KeyFlag{"--data-dir", "data.data_dir", "DIR", "Base of the relative paths of the section data"},
    KeyFlag{"--model-config", "model_config", "FILE",
            "YAML file whose model, embedding and optimizer are merged over CONFIG's"},
};

/// '_' becomes '-' in option names; values, and what follows --set or "--", stay as they are.
std::vector<std::string> normalised(std::vector<std::string> arguments) {
  bool is_text = false;
  for (std::string& argument : arguments) {
    if (is_text) {
      is_text = false;
      continue;
    }
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const auto end = std::find(argument.begin(), argument.end(), '=');
    std::replace(argument.begin(), end, '_', '-');
    is_text = argument == "--set";
  }
  return arguments;
}

/// The text as a YAML scalar, whatever it holds.
std::string yaml_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("''") : std::string(1, c);
  return out + "'";
}

class Parser {
 public:
  Parser() {
    app_.name("hyperframes");
    app_.require_subcommand(1);
    app_.set_version_flag("--version", "", "Print versions and what was compiled in");
    app_.footer(kFooter);
    CLI::App* const train = add("train", "Train the model of a configuration");
    add_config_options(*train);
    train->add_flag("--dry-run", options_.dry_run, "Print roles, placement and the memory plan, then exit");
    CLI::App* const eval = add("eval", "Metrics of a trained model");
    add_config_options(*eval);
    add_model_options(*eval, "validation");
    CLI::App* const predict = add("predict", "Write the scores of a trained model to a file");
    add_config_options(*predict);
    add_model_options(*predict, "test");
    predict->add_option("--output,-o", options_.output, "File of scores, one a line")->type_name("FILE");
    CLI::App* const convert = add("convert", "Write packed HDF5 data, vocabularies and statistics");
    add_config_options(*convert);
    convert->add_option("--output,-o", options_.output, "Directory (default: WORKDIR/packed)")
        ->type_name("DIR");
    add_synth();
    add_bench();
  }

  CommandLine parse(const std::vector<std::string>& raw) {
    std::vector<std::string> arguments = normalised(raw);
    check_subcommand(arguments);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    CommandLine result;
    try {
      app_.parse(arguments);
    } catch (const CLI::CallForHelp&) {
      result.outcome = CommandLineOutcome::help;
      result.text = app_.help();
      return result;
    } catch (const CLI::CallForVersion&) {
      result.outcome = CommandLineOutcome::version;
      return result;
    } catch (const CLI::ParseError& e) {
      check_extras();  // a misspelt option is often the reason
      problems_.emplace_back(e.what());
      fail();
    }
    check_extras();
    CLI::App* const chosen = app_.get_subcommands().front();
    for (const auto& [name, subcommand] : kSubcommands)
      if (chosen->get_name() == name) options_.subcommand = subcommand;
    collect_overrides(*chosen);
    check_values(*chosen);
    if (!problems_.empty()) fail();
    result.options = std::move(options_);
    return result;
  }

 private:
  CLI::App* add(const char* name, const char* help) {
    CLI::App* const sub = app_.add_subcommand(name, help);
    sub->allow_extras();  // reported by check_extras with a suggestion
    sub->footer(kFooter);
    return sub;
  }

  void add_config_options(CLI::App& sub) {
    sub.add_option("CONFIG", options_.config_path, "Configuration file (YAML)")
        ->required()
        ->type_name("FILE");
    add_override_options(sub);
    sub.add_flag("--print-config", options_.print_config, "Print the whole configuration as YAML, then exit");
  }

  void add_override_options(CLI::App& sub) {
    const auto repeatable = [&](const std::string& flag, const std::string& help, const char* type) {
      values_.push_back(std::make_unique<std::vector<std::string>>());
      CLI::Option* const option = sub.add_option(flag, *values_.back(), help);
      return option->type_name(type)->allow_extra_args(false)->expected(1)->multi_option_policy(
          CLI::MultiOptionPolicy::TakeAll);
    };
    repeatable("--set", "Set any configuration key, for instance --set train.epochs=2 (repeatable)",
               "KEY=VALUE");
    for (const KeyFlag& f : kKeyFlags)
      flag_of_[repeatable(f.flag, std::string(f.help) + " [" + f.key + "]", f.type)] = &f;
    sub.add_flag("--rdma", "Require the registered-window transport: --transport mpi [cluster.transport]");
  }

  void add_model_options(CLI::App& sub, const char* split) {
    sub.add_option("--checkpoint", options_.checkpoint,
                   "latest or a checkpoint's directory (default: latest)")
        ->type_name("latest|PATH");
    sub.add_option("--split", split_, std::string("train, validation or test (default: ") + split + ")")
        ->type_name("NAME")
        ->check(CLI::IsMember({"train", "validation", "test"}));
  }

  void add_synth() {
    SynthOptions& s = options_.synth;
    CLI::App* const sub = add("synth", "Write a synthetic click log in Criteo's format and truth.json");
    const auto number = [&](const char* flag, auto& member, const char* help) {
      sub->add_option(flag, member, help)->capture_default_str()->type_name("N");
    };
    sub->add_option("--output,-o", s.output_dir, "Directory")->required()->type_name("DIR");
    number("--rows", s.rows, "Training rows");
    number("--validation-rows", s.validation_rows, "Validation rows");
    number("--seed", s.seed, "Same seed, same bytes");
    sub->add_option("--vocabulary", vocabulary_, "Categories of each feature (default: 10 to 2,000, mixed)")
        ->type_name("N");
    number("--zipf", s.zipf, "Exponent of the categories' frequencies");
    number("--files", s.files, "Files that the training rows are cut into");
    sub->add_flag("--gzip", s.gzip, "Write .gz files");
  }

  void add_bench() {
    BenchOptions& b = options_.bench;
    CLI::App* const sub = add("bench", "Measure the parts of the system on this machine");
    sub->add_option("NAME", b.name, "gather, pull, train, idle or all")
        ->capture_default_str()
        ->type_name("NAME")
        ->check(CLI::IsMember({"gather", "pull", "train", "idle", "all"}));
    sub->add_option("--rows", b.rows, "Rows of the table")->type_name("N");
    sub->add_option("--dim", b.dim, "Floats of a row")->type_name("N");
    sub->add_option("--repeat", b.repeat, "Runs, of which the median counts")->type_name("N");
    sub->add_option("--steps", b.steps, "train: steps of each worker and repetition")->type_name("N");
    sub->add_option("--json", b.json, "Also write the results here")->type_name("FILE");
    add_override_options(*sub);
  }

  void check_subcommand(const std::vector<std::string>& arguments) {
    std::vector<std::string> names;
    for (const auto& [name, subcommand] : kSubcommands) names.emplace_back(name);
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    if (arguments.empty()) {
      problems_.push_back("no subcommand; expected one of " + all);
      fail();
    }
    const std::string& first = arguments.front();
    if (first.starts_with('-')) {
      if (first == "--help" || first == "-h" || first == "--version") return;
      unknown_option(first, app_);
      fail();
    }
    if (std::find(names.begin(), names.end(), first) != names.end()) return;
    const std::string near = nearest_name(first, names);
    problems_.push_back("unknown subcommand \"" + first + "\"" +
                        (near.empty() ? "; expected one of " + all : "; did you mean " + near + "?"));
    fail();
  }

  void unknown_option(const std::string& argument, const CLI::App& sub) {
    const std::string name = argument.substr(0, argument.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* option : sub.get_options())
      for (const std::string& long_name : option->get_lnames()) names.push_back("--" + long_name);
    // Without the dashes, so that their agreement does not count.
    std::vector<std::string> bare;
    for (const std::string& n : names) bare.push_back(n.substr(2));
    const std::string near =
        nearest_name(name.substr(std::min(name.find_first_not_of('-'), name.size())), bare);
    problems_.push_back("unknown option " + name + (near.empty() ? "" : "; did you mean --" + near + "?"));
  }

  void check_extras() {
    for (const CLI::App* sub : app_.get_subcommands()) {
      const std::vector<std::string> extras = sub->remaining();
      const bool options =
          std::any_of(extras.begin(), extras.end(), [](const auto& e) { return e.starts_with('-'); });
      // The value of an unknown option is left over too: it is no problem of its own.
      for (const std::string& extra : extras) {
        if (extra.starts_with('-'))
          unknown_option(extra, *sub);
        else if (!options)
          problems_.push_back("unexpected argument \"" + extra + '"');
      }
    }
    if (!problems_.empty()) fail();
  }

  void collect_overrides(const CLI::App& sub) {
    std::vector<Override>& out = options_.overrides;
    const auto given = [&](const char* flag) {
      const CLI::Option* const option = sub.get_option_no_throw(flag);
      return option != nullptr && option->count() > 0;
    };
    // A choice of roles on the command line replaces another kind of choice in the file.
    struct Choice {
      const char* flag;
      std::vector<std::pair<const char*, const char*>> replaced;
    };
    const std::vector<Choice> choices = {{"--ps", {{"cluster.ps_ratio", "null"}, {"cluster.role", "auto"}}},
                                         {"--ps-ratio", {{"cluster.ps", "null"}, {"cluster.role", "auto"}}},
                                         {"--role", {{"cluster.ps", "null"}, {"cluster.ps_ratio", "null"}}}};
    for (const Choice& choice : choices)
      if (given(choice.flag))
        for (const auto& [key, value] : choice.replaced) out.push_back({key, value, choice.flag});

    std::map<const CLI::Option*, std::size_t> seen;
    for (const CLI::Option* option : sub.parse_order()) {
      const std::size_t occurrence = seen[option]++;
      if (option->get_name() == "--rdma") {
        if (occurrence == 0) add_rdma(sub);
        continue;
      }
      const auto flag = flag_of_.find(option);
      if (flag == flag_of_.end() && option->get_name() != "--set") continue;
      if (occurrence >= option->results().size()) continue;
      const std::string& value = option->results()[occurrence];
      if (flag != flag_of_.end()) {
        if (option->get_name() == "--transport" && given("--rdma")) continue;  // add_rdma decides
        out.push_back({flag->second->key, yaml_quoted(value), flag->second->flag});
        continue;
      }
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos || equals == 0)
        problems_.push_back("--set: expected KEY=VALUE, for instance train.epochs=2; found \"" + value + '"');
      else
        out.push_back({value.substr(0, equals), value.substr(equals + 1), "--set"});
    }
  }

  void add_rdma(const CLI::App& sub) {
    const CLI::Option* const transport = sub.get_option_no_throw("--transport");
    if (transport->count() > 0 && transport->results().back() != "mpi" &&
        transport->results().back() != "auto")
      problems_.push_back("--rdma means --transport mpi; it cannot be combined with --transport " +
                          transport->results().back());
    else
      options_.overrides.push_back({"cluster.transport", "mpi", "--rdma"});
  }

  void check_values(const CLI::App& sub) {
    const auto at_least = [&](const char* flag, std::uint64_t value, std::uint64_t least) {
      if (value < least)
        problems_.push_back(std::string(flag) + ": expected at least " + std::to_string(least) + ", found " +
                            std::to_string(value));
    };
    options_.split = options_.subcommand == Subcommand::predict ? Split::test : Split::validation;
    if (split_ == "train") options_.split = Split::train;
    if (split_ == "validation") options_.split = Split::validation;
    if (split_ == "test") options_.split = Split::test;
    if (options_.subcommand == Subcommand::predict && options_.output.empty() && !options_.print_config)
      problems_.emplace_back("predict needs --output FILE for the scores");
    if (options_.subcommand == Subcommand::synth) {
      at_least("--rows", options_.synth.rows, 1);
      at_least("--vocabulary", vocabulary_.value_or(1), 1);
      if (vocabulary_) options_.synth.vocabulary = {*vocabulary_};
      at_least("--files", options_.synth.files, 1);
      if (options_.synth.output_dir.empty())
        problems_.emplace_back("--output: expected a directory, found an empty text");
      if (options_.synth.rows < options_.synth.files)
        problems_.emplace_back("--files: more files than --rows");
      if (!std::isfinite(options_.synth.zipf) || options_.synth.zipf < 0)
        problems_.emplace_back("--zipf: expected a number of at least 0");
    }
    if (options_.subcommand == Subcommand::bench) {
      at_least("--rows", options_.bench.rows.value_or(1), 1);
      at_least("--dim", options_.bench.dim.value_or(1), 1);
      at_least("--repeat", options_.bench.repeat.value_or(1), 1);
      at_least("--steps", options_.bench.steps.value_or(1), 1);
    }
    if (sub.get_option_no_throw("CONFIG") != nullptr && options_.config_path.empty())
      problems_.emplace_back("CONFIG: expected a file, found an empty text");
  }

  [[noreturn]] void fail() {
    std::string text = "command line:";
    for (const std::string& problem : problems_) text += (problems_.size() == 1 ? " " : "\n  ") + problem;
    const auto chosen = app_.get_subcommands();
    text += "\nsee hyperframes " + (chosen.empty() ? "" : chosen.front()->get_name() + " ") + "--help";
    throw ConfigError(text);
  }

  CLI::App app_{"Parameter-server training of click models on MPI"};
  Options options_;
  std::string split_;
  std::optional<std::uint64_t> vocabulary_;
  std::vector<std::unique_ptr<std::vector<std::string>>> values_;
  std::map<const CLI::Option*, const KeyFlag*> flag_of_;
  std::vector<std::string> problems_;
};

}  // namespace

const char* to_string(Subcommand subcommand) noexcept {
  for (const auto& [name, value] : kSubcommands)
    if (value == subcommand) return name;
  return "?";
}

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  return Parser().parse(arguments);
}

CommandLine parse_command_line(int argc, const char* const* argv) {
  return parse_command_line(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}

}  // namespace hf
