// Window backend `mpi`: MPI_Win_allocate, MPI_Put, MPI_Win_flush. Any ranks, over whichever one-sided component Open MPI
// picks (osc/sm inside a node, osc/ucx or osc/rdma between nodes).
// Threading: see window.hpp.
#pragma once

#include "comm/window.hpp"
#include "comm/window_handle.hpp"

namespace hf {

class MpiWindow final : public Window {
 public:
  explicit MpiWindow(std::size_t bytes);
  void put(Rank target, std::size_t offset, const void* data, std::size_t bytes) override;
  void flush(Rank target) override;
  std::byte* direct(Rank) noexcept override { return nullptr; }
  void progress() override;
  Transport transport() const noexcept override { return Transport::mpi; }

 private:
  WindowHandle handle_;
};

}  // namespace hf
