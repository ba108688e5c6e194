#include "ranks/worker/checkpointing.hpp"

#include <nlohmann/json.hpp>

#include "core/version.hpp"
#include "io/checkpoint.hpp"
#include "ranks/api/context.hpp"

namespace hf {
namespace {

// Few enough that a server's answer fits any mailbox slot, and that one command is done well before a deadline.
constexpr std::size_t kShardsPerCommand = 16;

/// Names and shapes of the dense parameters, in the order of the flat buffer.
nlohmann::json dense_layout(const CtrModel& network) {
  nlohmann::json layout = nlohmann::json::array();
  for (const auto& p : network.named_parameters())
    layout.push_back({{"name", p.key()}, {"shape", p.value().sizes().vec()}});
  return layout;
}

}  // namespace

std::string save_checkpoint(const Plan& plan, ProcessGroup& group, const WorkerModel& model,
                            const std::string& checkpoint_dir) {
  Context& context = *group.context();
  const std::string dir = step_directory(checkpoint_dir, context.step);
  if (group.worker_id() == 0) {
    Manifest manifest;
    manifest.step = context.step;
    manifest.num_shards = plan.config.cluster.num_shards;
    manifest.config_hash = config_hash(plan.config);
    manifest.version = kVersion;
    manifest.created = utc_now();
    manifest.tables = context.client().tables();
    manifest.dense_layout = dense_layout(*model.network);
    for (std::size_t from = 0;; from += kShardsPerCommand) {
      const nlohmann::json request = {
          {"op", "save"}, {"dir", dir}, {"from", from}, {"count", kShardsPerCommand}};
      bool any = false;
      for (const std::string& answer : context.client().command(request.dump())) {
        for (const auto& f : nlohmann::json::parse(answer)) {
          any = true;
          manifest.shards.push_back({f[0].get<std::string>(), f[1].get<std::uint64_t>(),
                                     f[2].get<std::uint32_t>(), f[3].get<std::uint64_t>()});
        }
      }
      if (!any) break;
    }
    std::sort(manifest.shards.begin(), manifest.shards.end(),
              [](const ShardFile& a, const ShardFile& b) { return a.name < b.name; });
    write_manifest(dir, manifest);
    publish_latest(checkpoint_dir, context.step);
  }
  group.barrier("worker 0 to write the checkpoint");
  return dir;
}

void load_checkpoint(ProcessGroup& group, WorkerModel& model, const std::string& step_dir) {
  Context& context = *group.context();
  if (group.worker_id() == 0) {
    const nlohmann::json expected = dense_layout(*model.network),
                         found = read_manifest(step_dir).dense_layout;
    if (expected != found)
      throw FormatError(step_dir + ": dense parameters of another model: expected " + expected.dump() +
                        ", found " + found.dump());
    context.client().command(nlohmann::json{{"op", "load"}, {"dir", step_dir}}.dump());
  }
  group.barrier("worker 0 to load the checkpoint");
  model.optimizer->pull_parameters();
}

}  // namespace hf
