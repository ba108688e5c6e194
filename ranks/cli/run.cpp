#include "ranks/cli/run.hpp"

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "comm/abort.hpp"
#include "comm/mpi.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "core/version.hpp"
#include "io/atomic_file.hpp"
#include "io/checkpoint.hpp"
#include "model/blas.hpp"
#include "ranks/api/context.hpp"
#include "ranks/worker/checkpointing.hpp"
#include "ranks/worker/evaluation.hpp"
#include "ranks/worker/report.hpp"
#include "ranks/worker/worker.hpp"
#include "routing/routing_table.hpp"

namespace hf {
namespace {

/// Runs a step of the set-up on this rank and agrees with the others on its problems.
template <class Step>
auto checked(Step&& step) {
  std::optional<decltype(step())> result;
  std::string problem;
  ExitCode code = ExitCode::done;
  try {
    result = step();
  } catch (const Error& e) {
    problem = e.what();
    code = e.exit_code();
  }
  agree(problem, code);
  return std::move(*result);
}

Plan checked_plan(const RunRequest& request, bool needs_statistics) {
  const Config config = checked([&] {
    Config c = load_config(request.config_path, request.overrides);
    if (c.checkpoint_dir.empty()) c.checkpoint_dir = c.workdir + "/checkpoints";
    if (needs_statistics) {
      std::string list;
      for (const std::string& p : statistics_problems(c)) list += (list.empty() ? "" : "\n") + p;
      if (!list.empty()) throw ConfigError(list);
    }
    return c;
  });
  return checked([&] { return make_plan(config); });
}

std::shared_ptr<ProcessGroup> start_group(const Plan& plan) {
  std::shared_ptr<ProcessGroup> group;
  std::string problem;
  try {
    group = init_process_group(group_options(plan.config));
  } catch (const ConfigError& e) {
    problem = e.what();  // the same on every rank: it follows from what all ranks exchanged
  }
  agree(problem, ExitCode::config);
  const Context& context = *group->context();
  init_log(context.me.value,
           to_string(context.roles.role_of_rank[static_cast<std::size_t>(context.me.value)]));
  return group;
}

/// Servers serve, workers work, all report. Returns the reports of all ranks.
template <class Work>
std::vector<nlohmann::json> run_roles(ProcessGroup& group, Work&& work) {
  if (group.is_worker()) {
    work();
    group.context()->say_goodbye();
  } else {
    group.serve();
  }
  return exchange_reports(group,
                          rank_report(group, group.is_server() ? &group.context()->server_report : nullptr));
}

void warn_about_blas(const ProcessGroup& group) {
  const BlasInfo blas = blas_info();
  if (blas.generic && group.worker_id() == 0)
    spdlog::warn(
        "the BLAS in use is the generic one ({}): the dense part runs some thirty times slower than with "
        "OpenBLAS or MKL",
        blas.name);
}

bool first_worker(const ProcessGroup& group) { return group.is_worker() && group.worker_id() == 0; }

/// Runs the body of a subcommand; what it throws ends the job with the right code.
template <class Body>
int guarded(Body&& body) {
  try {
    const MpiSession session;
    init_log(session.rank(), "");
    try {
      body();
    } catch (const AgreedError& e) {
      Context::slot().reset();
      return static_cast<int>(e.exit_code());
    } catch (const std::exception& e) {
      abort_job(e);  // while MPI is up and nobody unwinds into collective calls
    }
    return 0;
  } catch (const std::exception& e) {
    abort_job(e);
  }
}

/// The checkpoint decides how rows are hashed into shards.
Plan checkpoint_plan(const RunRequest& request, std::string& step_dir) {
  Plan plan = checked_plan(request, true);
  step_dir = checked([&] { return resolve_checkpoint(plan.config.checkpoint_dir, request.checkpoint); });
  plan.config.cluster.num_shards = checked([&] { return read_manifest(step_dir).num_shards; });
  return plan;
}

void check_split(const Plan& plan, Split split) {
  checked([&] {
    if (!has_split(plan.config, split))
      throw ConfigError(std::string("data.") + to_string(split) +
                        ": the configuration names no rows for the " + to_string(split) + " split");
    return true;
  });
}

}  // namespace

int run_train(const RunRequest& request) {
  return guarded([&] {
    const Plan plan = checked_plan(request, true);
    check_split(plan, Split::train);
    checked([&] {
      make_directories(plan.config.workdir);
      make_directories(plan.config.checkpoint_dir);
      return true;
    });
    const auto group = start_group(plan);
    const std::string path = plan.config.workdir + "/summary.json";
    try {
      WorkerReport report;
      if (first_worker(*group)) {
        write_json_file(
            path, {{"status", "running"}, {"config_hash", config_hash(plan.config)}, {"version", kVersion}});
        write_file_atomically(plan.config.workdir + "/config.yaml", print_config(plan.config));
        std::cout << "hyperframes " << kVersion << ": " << to_string(plan.config.model.name) << " on "
                  << group->size() << (group->size() == 1 ? " rank (" : " ranks (") << group->roles()
                  << "), transport " << group->transport() << ", workdir " << plan.config.workdir
                  << std::endl;
      }
      const auto ranks = run_roles(*group, [&] {
        warn_about_blas(*group);
        report = Worker(plan, *group).train();
      });
      if (first_worker(*group)) {
        const nlohmann::json j = summary(plan, *group, report, ranks);
        write_json_file(path, j);
        std::cout << "done: " << format_count(report.samples) << " samples in "
                  << format_seconds(report.train_seconds) << " ("
                  << format_count(static_cast<std::uint64_t>(
                         report.train_seconds > 0 ? static_cast<double>(report.samples) / report.train_seconds
                                                  : 0))
                  << "/s)";
        if (report.validation)
          std::cout << ", validation AUC " << report.validation->metrics.auc << ", logloss "
                    << report.validation->metrics.logloss;
        if (report.bad_rows > 0) std::cout << ", " << report.bad_rows << " malformed rows";
        std::cout << "; " << path << std::endl;
      }
    } catch (const AgreedError&) {
      throw;
    } catch (const std::exception& e) {
      try {
        write_json_file(path, {{"status", "failed"},
                               {"error", e.what()},
                               {"exit_code", exit_code_of(e)},
                               {"rank", group->rank()},
                               {"config_hash", config_hash(plan.config)},
                               {"version", kVersion}});
      } catch (const std::exception& second) {
        spdlog::error("{}", second.what());
      }
      abort_job(e);
    }
    destroy_process_group();
  });
}

int run_eval(const RunRequest& request) {
  return guarded([&] {
    std::string step_dir;
    const Plan plan = checkpoint_plan(request, step_dir);
    check_split(plan, request.split);
    checked([&] { return make_directories(plan.config.workdir), true; });
    const auto group = start_group(plan);
    run_roles(*group, [&] {
      warn_about_blas(*group);
      WorkerModel model(plan);
      load_checkpoint(*group, model, step_dir);
      const Evaluation e = evaluate(plan, *group, model, request.split);
      if (group->worker_id() != 0) return;
      nlohmann::json j = to_json(e.metrics);
      j.update({{"split", to_string(request.split)},
                {"checkpoint", step_dir},
                {"bad_rows", e.bad_rows},
                {"seconds", e.seconds},
                {"version", kVersion}});
      write_json_file(plan.config.workdir + "/eval.json", j);
      std::cout << j.dump(2) << std::endl;
    });
    destroy_process_group();
  });
}

int run_predict(const RunRequest& request) {
  return guarded([&] {
    std::string step_dir;
    const Plan plan = checkpoint_plan(request, step_dir);
    check_split(plan, request.split);
    const auto group = start_group(plan);
    run_roles(*group, [&] {
      warn_about_blas(*group);
      WorkerModel model(plan);
      load_checkpoint(*group, model, step_dir);
      const std::uint64_t rows = predict(plan, *group, model, request.split, request.output);
      if (group->worker_id() == 0)
        std::cout << "wrote " << format_count(rows) << " scores to " << request.output << std::endl;
    });
    destroy_process_group();
  });
}

int run_dry(const RunRequest& request) {
  return guarded([&] {
    const Plan plan = checked_plan(request, true);
    const Communicator world = Communicator::world();
    const auto texts =
        world.all_gather(std::to_string(static_cast<int>(plan.config.cluster.role)) + "\n" + host_name(),
                         "all ranks to start");
    const RoleMap roles = checked([&] {
      std::vector<RankInfo> infos;
      for (const std::string& t : texts) {
        const std::size_t line = t.find('\n');
        infos.push_back({t.substr(line + 1), static_cast<RoleChoice>(std::stoi(t.substr(0, line)))});
      }
      RoleMap map = assign_roles(infos, plan.config.cluster);
      PoolLayout(map, plan.config.cluster.buffer_pool_size);
      return map;
    });
    if (world.rank() != 0) return;
    std::vector<ServerId> servers;
    for (std::uint32_t s = 0; s < roles.server_ranks.size(); ++s) servers.emplace_back(s);
    const RoutingTable routing(servers, plan.config.cluster.num_shards);
    std::uint64_t table_bytes = 0;
    std::cout << "tables:\n";
    for (const TableSpec& t : plan.embeddings.tables) {
      const std::uint64_t bytes = t.rows * (t.dim + optimizer_slots(t.optimizer.kind, t.dim)) * sizeof(float);
      table_bytes += bytes;
      std::cout << "  " << t.name << ": " << to_string(t.kind) << ", "
                << (t.kind == TableKind::dynamic ? std::string("growing") : format_count(t.rows) + " rows")
                << " of " << t.dim << " floats, " << to_string(t.optimizer.kind)
                << (bytes ? ", " + format_bytes(static_cast<double>(bytes)) : "") << "\n";
    }
    std::cout << "ranks:\n";
    std::uint32_t server = 0, worker = 0;
    for (std::size_t r = 0; r < texts.size(); ++r) {
      const Rank rank{static_cast<std::int32_t>(r)};
      std::cout << "  rank " << r << "  host " << texts[r].substr(texts[r].find('\n') + 1) << "  "
                << to_string(roles.role_of_rank[r]);
      std::uint64_t bytes = plan.config.cluster.buffer_pool_size;
      if (roles.is_server(rank)) {
        const std::size_t shards = routing.shards_of(ServerId{server}).size();
        bytes += table_bytes * shards / plan.config.cluster.num_shards;
        std::cout << "  server " << server++ << ": " << shards << " of " << plan.config.cluster.num_shards
                  << " shards";
      }
      if (roles.is_worker(rank)) std::cout << "  worker " << worker++;
      std::cout << "  memory: tables and pool " << format_bytes(static_cast<double>(bytes)) << "\n";
    }
    std::cout << std::flush;
  });
}

}  // namespace hf
