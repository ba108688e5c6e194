// Start and end of a training program: which rank is what, and the meeting points of the workers.
//
//   int main() {
//     auto group = hf::init_process_group(options);      // every rank
//     if (!group->is_worker()) { group->serve(); hf::destroy_process_group(); return 0; }
//     … build model, embeddings, optimizer; train …      // workers (and hybrid ranks)
//     hf::destroy_process_group();                       // every rank
//   }
//
// Ranks split into servers (hold shards of the parameters), workers (own data and compute) and hybrids (both).
// Threading: all calls from the thread that called init_process_group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hf {

class Context;

struct ProcessGroupOptions {
  std::string role;                 ///< of this rank: "", "ps", "worker" or "hybrid"; on every rank or none
  std::optional<std::uint32_t> ps;  ///< number of servers
  std::optional<std::pair<std::uint32_t, std::uint32_t>> ps_ratio;  ///< servers : workers
  bool packed_placement = false;  ///< servers on the first ranks instead of spread over the nodes
  std::uint32_t num_shards = 64;
  std::string transport = "auto";                ///< auto, shm or mpi
  std::uint64_t buffer_pool_size = 64ull << 20;  ///< bytes of each rank's registered window
  /// 0 = synchronous; n = a worker may be n steps ahead of the slowest; the maximum = asynchronous.
  std::uint64_t staleness_bound = 1;
  double wait_timeout_seconds = 1800.0;
  std::uint32_t compute_threads = 0;  ///< per worker; 0 = cores of the node / ranks on it - 1, at least 1
};
inline constexpr std::uint64_t kAsynchronous = std::numeric_limits<std::uint64_t>::max();

class ProcessGroup {
 public:
  explicit ProcessGroup(std::shared_ptr<Context> context);

  int rank() const noexcept;
  int size() const noexcept;
  bool is_worker() const noexcept;  ///< worker or hybrid
  bool is_server() const noexcept;  ///< ps or hybrid
  int worker_id() const;            ///< 0 … num_workers-1. Requires: is_worker()
  int num_workers() const noexcept;
  int num_servers() const noexcept;
  std::string transport() const;  ///< "shm" or "mpi"
  std::string roles() const;      ///< for instance "1 ps, 3 workers"

  /// Serves until every worker has left. Requires: a ps rank (a hybrid's service runs in a thread of its own).
  void serve();

  /// Meets all workers with everything pushed so far applied: a worker that calls it has no more data for now and
  /// holds nobody back. Afterwards all workers' clocks are equal. Collective over workers.
  void synchronize();

  void barrier(const std::string& what);                                      ///< Collective over workers.
  void all_reduce_sum(std::vector<double>& values, const std::string& what);  ///< Collective over workers.
  /// Everybody's bytes on worker 0 (by worker), nothing elsewhere. Collective over workers.
  std::vector<std::vector<std::byte>> gather(const std::vector<std::byte>& bytes, const std::string& what);

  const std::shared_ptr<Context>& context() const noexcept { return context_; }

 private:
  std::shared_ptr<Context> context_;
};

/// Starts MPI (unless the program did), agrees on roles, allocates the window. Collective over all ranks.
/// Throws: ConfigError (the same on every rank), MpiError.
std::shared_ptr<ProcessGroup> init_process_group(const ProcessGroupOptions& options = {});

/// Workers say goodbye to the servers; all ranks meet; MPI ends. Collective over all ranks.
void destroy_process_group();

}  // namespace hf
