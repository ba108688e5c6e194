#include "comm/shm_window.hpp"

#include <atomic>
#include <cstring>

#include "comm/mpi.hpp"

namespace hf {

// The memory of a dead peer stays mapped, and a put needs nobody's help.
ShmWindow::ShmWindow(std::size_t bytes)
    : Window({.can_ring = true, .needs_progress = false, .survives_peer_loss = true}) {
  MPI_Info info = MPI_INFO_NULL;
  HF_MPI(MPI_Info_create(&info));
  HF_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
  HF_MPI(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
  void* base = nullptr;
  HF_MPI(
      MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, info, MPI_COMM_WORLD, &base, handle_.put()));
  HF_MPI(MPI_Info_free(&info));
  handle_.open(base);
  int ranks = 0;
  HF_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
  for (int r = 0; r < ranks; ++r) {
    MPI_Aint size = 0;
    int unit = 0;
    void* peer = nullptr;
    HF_MPI(MPI_Win_shared_query(handle_.get(), r, &size, &unit, &peer));
    peers_.push_back(static_cast<std::byte*>(peer));
  }
  local_ = {static_cast<std::byte*>(base), bytes};
  // Shared memory comes zeroed from the kernel; a single rank gets memory of the heap, where an earlier window may have
  // left messages.
  if (ranks == 1) std::memset(base, 0, bytes);
  HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

void ShmWindow::put(Rank target, std::size_t offset, const void* data, std::size_t bytes) {
  std::memcpy(direct(target) + offset, data, bytes);
}

void ShmWindow::flush(Rank) { std::atomic_thread_fence(std::memory_order_release); }

}  // namespace hf
