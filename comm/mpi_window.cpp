#include "comm/mpi_window.hpp"

#include <atomic>
#include <cstring>

#include "comm/mpi.hpp"

namespace hf {

// Over TCP a put moves only with the target's help, and one dead target blocks a flush to every other.
MpiWindow::MpiWindow(std::size_t bytes)
    : Window({.can_ring = false, .needs_progress = true, .survives_peer_loss = false}) {
  void* base = nullptr;
  MPI_Info info = MPI_INFO_NULL;
  HF_MPI(MPI_Info_create(&info));
  HF_MPI(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
  HF_MPI(MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, info, MPI_COMM_WORLD, &base, handle_.put()));
  HF_MPI(MPI_Info_free(&info));
  std::memset(base, 0, bytes);
  handle_.open(base);
  local_ = {static_cast<std::byte*>(base), bytes};
  HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

void MpiWindow::put(Rank target, std::size_t offset, const void* data, std::size_t bytes) {
  HF_MPI(MPI_Put(data, static_cast<int>(bytes), MPI_BYTE, target.value, static_cast<MPI_Aint>(offset),
                 static_cast<int>(bytes), MPI_BYTE, handle_.get()));
}

void MpiWindow::flush(Rank target) { HF_MPI(MPI_Win_flush(target.value, handle_.get())); }

void MpiWindow::progress() {
  int flag = 0;
  HF_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
  std::atomic_thread_fence(std::memory_order_acquire);
}

}  // namespace hf
