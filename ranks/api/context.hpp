// The state of one process between init_process_group and destroy_process_group: roles, window, client, clock.
// Threading: the caller's thread, but for the service thread of a hybrid rank, which touches only its Server.
#pragma once

#include <torch/torch.h>

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "comm/heartbeat.hpp"
#include "comm/liveness.hpp"
#include "comm/mpi.hpp"
#include "comm/parameter_client.hpp"
#include "comm/pool_layout.hpp"
#include "comm/server_port.hpp"
#include "comm/window.hpp"
#include "hyperframes/process_group.hpp"
#include "ranks/server/server.hpp"
#include "routing/placement.hpp"

namespace hf {

/// Rows of one table that a backward pass has reached: their gradients wait for step().
struct RowGradients {
  TableId table;
  std::span<const RowId> ids;              ///< distinct
  std::int64_t first_row = 0;              ///< of this table inside the rows of its lookup
  std::shared_ptr<const void> keep_alive;  ///< of `ids`; nullptr: the caller's until zero_grad()
};

/// What backward passes have reached since the last zero_grad(), in the order of the forwards. A forward alone leaves nothing
/// here: what zero_grad() finds are gradients that exist, as in PyTorch.
class PendingGradients {
 public:
  struct Lookup {
    std::uint64_t forward;  ///< number of the forward pass
    torch::Tensor rows;     ///< the leaf whose gradient holds those of all parts
    std::vector<RowGradients> parts;
  };

  std::uint64_t next_forward() noexcept { return forwards_++; }
  /// For the backward pass; a lookup that is noted already (a second backward over a retained graph) stays as it is.
  /// Throws: ConfigError after step() without zero_grad().
  void note(std::uint64_t forward, const torch::Tensor& rows, const std::vector<RowGradients>& parts);
  /// Lookups whose gradient is there.
  const std::vector<Lookup>& lookups() const noexcept { return lookups_; }
  /// step() has taken them.
  void pushed();
  /// True from a step() that pushed row gradients to zero_grad().
  bool were_pushed() const noexcept { return were_pushed_; }
  void zero();

 private:
  std::uint64_t forwards_ = 0;
  std::vector<Lookup> lookups_;
  bool were_pushed_ = false;
};

/// A table that is created on the servers when its optimizer is known.
struct LazyTable {
  TableSpec spec;
  bool inherits_optimizer = false;
  std::optional<TableId> id;
};

class Context {
 public:
  explicit Context(const ProcessGroupOptions& options);
  ~Context();

  /// The context of this process. Throws: ConfigError when there is none.
  static Context& current();
  static std::shared_ptr<Context>& slot();

  void serve();
  void say_goodbye();  ///< workers: to the servers, which then end; a hybrid's service thread is joined
  void leave();        ///< the end: goodbye, meet
  void synchronize();

  ParameterClient& client();
  TableId create(LazyTable& table);
  /// Throws: ConfigError for a name that is reserved, or taken already.
  void check_table_name(const std::string& name) const;
  void create_all_tables();
  std::uint8_t pull_flags() const noexcept;

  ProcessGroupOptions options;
  MpiSession session;
  Communicator control;
  Communicator workers;
  RoleMap roles;
  Rank me;
  std::string host;
  std::optional<WorkerId> worker_id;
  std::optional<ServerId> server_id;
  std::unique_ptr<PoolLayout> layout;
  std::unique_ptr<Window> window;
  std::optional<Liveness> liveness;
  std::optional<Heartbeat> heartbeat;
  std::optional<Pacemaker> pacemaker;

  Step step = 0;  ///< this worker's clock
  bool inference = false;
  PendingGradients pending;
  bool has_optimizer = false;
  std::vector<std::shared_ptr<LazyTable>> tables;  ///< in order of creation by the program
  std::optional<OptimizerSpec> row_optimizer;      ///< of the hf::Async… optimizer
  ServerReport server_report;

 private:
  void start_service();
  std::unique_ptr<ParameterClient> client_;
  std::thread service_;
  bool said_goodbye_ = false, left_ = false;
};

}  // namespace hf
