#include "comm/window.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "comm/mpi.hpp"
#include "comm/mpi_window.hpp"
#include "comm/shm_window.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace hf {

std::unique_ptr<Window> make_window(Transport transport, std::size_t pool_bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  pool_bytes = (pool_bytes + page - 1) / page * page;
  const bool one_node = [&] {
    const Communicator node = Communicator::split_node(MPI_COMM_WORLD);
    int all = 0;
    HF_MPI(MPI_Comm_size(MPI_COMM_WORLD, &all));
    return node.size() == all;
  }();
  if (transport == Transport::automatic) transport = one_node ? Transport::shm : Transport::mpi;
  if (transport == Transport::shm && !one_node)
    throw ConfigError(
        "cluster.transport: shm needs all ranks on one node; expected auto or mpi for several nodes");
  try {
    if (transport == Transport::shm) return std::make_unique<ShmWindow>(pool_bytes);
    return std::make_unique<MpiWindow>(pool_bytes);
  } catch (const MpiError& e) {
    throw MpiError(
        fmt::format("cannot make a window of {} per rank (cluster.buffer_pool_size; shared memory lies in "
                    "/dev/shm): {}",
                    format_bytes(static_cast<double>(pool_bytes)), e.what()));
  }
}

}  // namespace hf
