#include "comm/window.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <vector>

#include "comm/mpi.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace hf {
namespace {

/// Frees the window unless an exception is unwinding: MPI_Win_free is collective.
class WindowHandle {
 public:
  MPI_Win win = MPI_WIN_NULL;
  WindowHandle() : uncaught_(std::uncaught_exceptions()) {}
  WindowHandle(const WindowHandle&) = delete;
  WindowHandle& operator=(const WindowHandle&) = delete;
  ~WindowHandle() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (win == MPI_WIN_NULL || finalized || std::uncaught_exceptions() > uncaught_) return;
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
  }
  void open() {
    HF_MPI(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    HF_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  }

 private:
  int uncaught_;
};

/// Bells and credits are atomics on lines of their own.
void check_aligned(const void* base) {
  if (reinterpret_cast<std::uintptr_t>(base) % alignof(Bell) != 0)
    throw MpiError("the MPI library's window memory is not aligned to " + std::to_string(alignof(Bell)) +
                   " bytes");
}

class ShmWindow final : public Window {
 public:
  explicit ShmWindow(std::size_t bytes) {
    MPI_Info info = MPI_INFO_NULL;
    HF_MPI(MPI_Info_create(&info));
    HF_MPI(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    HF_MPI(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    void* base = nullptr;
    HF_MPI(
        MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes), 1, info, MPI_COMM_WORLD, &base, &handle_.win));
    HF_MPI(MPI_Info_free(&info));
    handle_.open();
    int ranks = 0;
    HF_MPI(MPI_Comm_size(MPI_COMM_WORLD, &ranks));
    for (int r = 0; r < ranks; ++r) {
      MPI_Aint size = 0;
      int unit = 0;
      void* peer = nullptr;
      HF_MPI(MPI_Win_shared_query(handle_.win, r, &size, &unit, &peer));
      peers_.push_back(static_cast<std::byte*>(peer));
    }
    local_ = {static_cast<std::byte*>(base), bytes};
    // Shared memory comes zeroed from the kernel; a single rank gets memory of the heap, where an earlier
    // window may have left messages.
    if (ranks == 1) std::memset(base, 0, bytes);
    check_aligned(base);
    HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
  void put(Rank target, std::size_t offset, const void* data, std::size_t bytes) override {
    std::memcpy(direct(target) + offset, data, bytes);
  }
  void flush(Rank) override { std::atomic_thread_fence(std::memory_order_release); }
  std::byte* direct(Rank target) noexcept override { return peers_[static_cast<std::size_t>(target.value)]; }
  void progress() override {}
  Transport transport() const noexcept override { return Transport::shm; }

 private:
  WindowHandle handle_;
  std::vector<std::byte*> peers_;
};

class MpiWindow final : public Window {
 public:
  explicit MpiWindow(std::size_t bytes) {
    void* base = nullptr;
    MPI_Info info = MPI_INFO_NULL;
    HF_MPI(MPI_Info_create(&info));
    HF_MPI(MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096"));
    HF_MPI(MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, info, MPI_COMM_WORLD, &base, &handle_.win));
    HF_MPI(MPI_Info_free(&info));
    check_aligned(base);
    std::memset(base, 0, bytes);
    handle_.open();
    local_ = {static_cast<std::byte*>(base), bytes};
    HF_MPI(MPI_Barrier(MPI_COMM_WORLD));
  }
  void put(Rank target, std::size_t offset, const void* data, std::size_t bytes) override {
    HF_MPI(MPI_Put(data, static_cast<int>(bytes), MPI_BYTE, target.value, static_cast<MPI_Aint>(offset),
                   static_cast<int>(bytes), MPI_BYTE, handle_.win));
  }
  void flush(Rank target) override { HF_MPI(MPI_Win_flush(target.value, handle_.win)); }
  std::byte* direct(Rank) noexcept override { return nullptr; }
  void progress() override {
    int flag = 0;
    HF_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  Transport transport() const noexcept override { return Transport::mpi; }

 private:
  WindowHandle handle_;
};

}  // namespace

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
    throw MpiError("cannot allocate a window of " + format_bytes(static_cast<double>(pool_bytes)) +
                   " per rank (cluster.buffer_pool_size; shared memory lies in /dev/shm): " + e.what());
  }
}

}  // namespace hf
