// Servers and workers of a test, on the ranks of the world: the server loop runs in a thread of its own on
// hybrid ranks, as in the program.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/abort.hpp"
#include "comm/mpi.hpp"
#include "comm/parameter_client.hpp"
#include "comm/server_port.hpp"
#include "ranks/server/server.hpp"
#include "tests/comm/comm_test_support.hpp"

namespace hf::test {

struct Launch {
  std::string letters;  ///< roles: one per rank of the world
  Transport transport = Transport::shm;
  std::uint64_t staleness_bound = kStalenessInfinite;
  std::size_t pool_bytes = 0;  ///< 0: the smallest
  std::uint32_t num_shards = 16;
};

struct WorkerSide {
  ParameterClient& client;
  WorkerId id;
  std::uint32_t num_workers;
  const Communicator& workers;
};

/// Collective. Runs `work` on every worker, then says goodbye; the report of this rank's server, if there is
/// one.
inline std::optional<ServerReport> run_cluster(const Launch& launch,
                                               const std::function<void(WorkerSide&)>& work) {
  constexpr double kTimeoutSeconds = 60;
  Communicator world = Communicator::world();
  world.set_timeout(kTimeoutSeconds);
  HF_CHECK(launch.letters.size() == static_cast<std::size_t>(world.size()), "one letter per rank");
  const RoleMap roles = role_map(launch.letters);
  const PoolLayout layout(roles, launch.pool_bytes > 0 ? launch.pool_bytes : smallest_pool(roles));
  const std::unique_ptr<Window> window = make_window(launch.transport, layout.pool_bytes());
  const Rank me{world.rank()};
  Communicator workers = world.split(roles.is_worker(me), me.value);

  std::optional<ServerReport> report;
  std::thread service;
  for (std::uint32_t s = 0; s < roles.server_ranks.size(); ++s) {
    if (roles.server_ranks[s] != me) continue;
    service = std::thread([&, s] {
      try {
        ServerPort port(*window, layout, roles, ServerId{s}, kTimeoutSeconds);
        Server server(port, {.num_servers = static_cast<std::uint32_t>(roles.server_ranks.size()),
                             .num_shards = launch.num_shards,
                             .staleness_bound = launch.staleness_bound});
        report = server.run();
      } catch (const std::exception& e) {
        abort_job(e);
      }
    });
  }
  for (std::uint32_t w = 0; w < roles.worker_ranks.size(); ++w) {
    if (roles.worker_ranks[w] != me) continue;
    try {
      workers.set_timeout(kTimeoutSeconds);
      ParameterClient client(*window, layout, roles, WorkerId{w}, launch.num_shards, kTimeoutSeconds);
      WorkerSide side{client, WorkerId{w}, static_cast<std::uint32_t>(roles.worker_ranks.size()), workers};
      work(side);
      client.bye();
    } catch (const std::exception& e) {
      abort_job(e);  // the server and the other workers wait for this one
    }
  }
  if (service.joinable()) service.join();
  world.barrier("all ranks to finish");
  return report;
}

/// The role maps to try on a world of this size.
inline std::vector<std::string> role_maps_of(int size) {
  if (size == 1) return {"h"};
  if (size == 2) return {"pw", "hh"};
  if (size == 3) return {"pww", "hhh"};
  std::vector<std::string> maps = {"pwww", "ppww", "hhhh"};
  for (std::string& m : maps) m.resize(static_cast<std::size_t>(size), 'w');
  return maps;
}

/// Numbers that every rank can see, whatever the transport of the test is: plain atomics in shared memory of
/// rank 0.
class SharedCounters {
 public:
  SharedCounters() : window_(make_window(Transport::shm, 4096)) {}
  std::atomic_ref<std::uint64_t> operator[](std::size_t i) {
    return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(window_->direct(Rank{0}))[i * 8]);
  }
  /// Throws instead of waiting for ever.
  void wait_for(std::size_t i, std::uint64_t at_least) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while ((*this)[i].load() < at_least) {
      if (std::chrono::steady_clock::now() > deadline)
        throw MpiError("counter " + std::to_string(i) + " stays at " + std::to_string((*this)[i].load()) +
                       ", expected " + std::to_string(at_least));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

 private:
  std::unique_ptr<Window> window_;
};

inline TableSpec table_spec(const std::string& name, TableKind kind, std::uint64_t rows, std::uint32_t dim) {
  TableSpec spec;
  spec.name = name;
  spec.kind = kind;
  spec.rows = rows;
  spec.dim = dim;
  return spec;
}

}  // namespace hf::test
