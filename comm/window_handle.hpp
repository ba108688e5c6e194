// An MPI window, locked for all ranks from open() to its end.
// Collective: construction of what it holds, and destruction, which is left out while an exception unwinds.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace hf {

class WindowHandle {
 public:
  WindowHandle();
  WindowHandle(const WindowHandle&) = delete;
  WindowHandle& operator=(const WindowHandle&) = delete;
  ~WindowHandle();

  /// To be given to the MPI call that makes the window.
  MPI_Win* put() noexcept { return &win_; }
  MPI_Win get() const noexcept { return win_; }
  /// Errors are returned from now on, and all ranks may be reached. Throws: MpiError for memory that is not aligned as
  /// bells and credits need it, or whose memory model is not MPI_WIN_UNIFIED.
  void open(const void* base);

 private:
  MPI_Win win_ = MPI_WIN_NULL;
  int uncaught_;
};

/// Throws: MpiError that says what to do, unless `model` (of the attribute MPI_WIN_MODEL; nullptr: not set) is
/// MPI_WIN_UNIFIED. Receivers poll their own memory: with a separate copy for the window they would see nothing.
void check_memory_model(const int* model);

}  // namespace hf
