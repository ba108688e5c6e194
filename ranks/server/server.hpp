// A server: owns shards of every table, applies pushes, answers pulls, keeps the staleness bound.
// Threading: one service thread runs it (the main thread of a ps rank, a thread of its own on a hybrid rank).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "comm/server_port.hpp"
#include "core/types.hpp"
#include "table/clock_table.hpp"
#include "table/gradient_merge.hpp"
#include "table/table.hpp"

namespace hf {

struct ServerOptions {
  std::uint32_t num_servers = 1;
  std::uint32_t num_shards = 64;
  std::uint64_t staleness_bound = 1;
};

struct ServerReport {
  std::uint64_t rows = 0;  ///< rows that exist, dense blocks included
  std::uint64_t table_bytes = 0;
  std::uint64_t rows_applied = 0;
  std::uint64_t max_observed_lag = 0;  ///< largest (step of a pull − slowest clock) at its answer
  std::uint64_t deferred_pulls = 0;    ///< pulls that the gate held back
};

class Server {
 public:
  Server(ServerPort& port, const ServerOptions& options);
  /// Serves until every worker has said goodbye. Throws: what a damaged push or a full memory throws.
  ServerReport run();

 private:
  struct StoredPush {
    WorkerId worker;
    MessageHeader header;
    std::vector<std::byte> body;
  };
  struct OpenStep {
    std::vector<StoredPush> pushes;
    std::vector<float> weights;  // by worker
  };
  struct DeferredPull {
    WorkerId worker;
    MessageHeader header;
    std::vector<RowId> ids;
  };

  bool serve_one(WorkerId worker);
  void handle(WorkerId worker, const MessageView& message);
  void create_table(const MessageView& message);
  void assign(const MessageView& message);
  void pull(WorkerId worker, const MessageView& message);
  void answer(WorkerId worker, const MessageHeader& request, std::span<const RowId> ids);
  void push(WorkerId worker, const MessageView& message);
  void clock(WorkerId worker, const MessageHeader& header);
  OpenStep& open_step(Step step);
  bool synchronous() const noexcept { return options_.staleness_bound == 0 && port_.num_workers() > 1; }
  void apply_complete_steps();
  void answer_deferred();
  void goodbye(WorkerId worker);
  std::string command(const MessageView& message);
  std::string execute(const nlohmann::json& request);
  Table& table(std::uint32_t id);
  void apply(Table& table, std::span<const RowId> ids, const float* grads, const MessageHeader& header,
             float weight);

  ServerPort& port_;
  ServerOptions options_;
  std::vector<ShardId> shards_;
  std::vector<Table> tables_;
  ClockTable clocks_;
  /// Synchronous training only: pushes of steps that some worker has not completed.
  std::map<Step, OpenStep> open_steps_;
  std::vector<std::vector<std::byte>> spare_bodies_;
  std::map<std::uint32_t, GradientMerge> merges_;  // by dim
  std::deque<DeferredPull> deferred_;
  std::vector<Step> last_push_seq_;  // by worker: exactly-once
  std::uint32_t said_goodbye_ = 0;
  ServerReport report_;
};

}  // namespace hf
