#include "comm/window_handle.hpp"

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <exception>

#include "comm/bell.hpp"
#include "comm/mpi.hpp"
#include "core/error.hpp"

namespace hf {

WindowHandle::WindowHandle() : uncaught_(std::uncaught_exceptions()) {}

WindowHandle::~WindowHandle() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (win_ == MPI_WIN_NULL || finalized || std::uncaught_exceptions() > uncaught_) return;
  MPI_Win_unlock_all(win_);
  MPI_Win_free(&win_);
}

void WindowHandle::open(const void* base) {
  HF_MPI(MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN));
  if (reinterpret_cast<std::uintptr_t>(base) % alignof(Bell) != 0)
    throw MpiError(fmt::format("the MPI library's window memory is not aligned to {} bytes", alignof(Bell)));
  const int* model = nullptr;
  int found = 0;
  HF_MPI(MPI_Win_get_attr(win_, MPI_WIN_MODEL, &model, &found));
  check_memory_model(found ? model : nullptr);
  HF_MPI(MPI_Win_lock_all(MPI_MODE_NOCHECK, win_));
}

void check_memory_model(const int* model) {
  if (model && *model == MPI_WIN_UNIFIED) return;
  throw MpiError(
      fmt::format("the MPI library gives windows with {} memory model, expected MPI_WIN_UNIFIED: choose "
                  "another one-sided component "
                  "(Open MPI: --mca osc sm,rdma or --mca osc ucx), or cluster.transport: shm on one node",
                  !model                       ? "an unknown"
                  : *model == MPI_WIN_SEPARATE ? "the MPI_WIN_SEPARATE"
                                               : "an unknown"));
}

}  // namespace hf
