#include "comm/abort.hpp"

#include <mpi.h>
#include <unistd.h>

#include <cstdio>

#include "core/error.hpp"
#include "core/log.hpp"

namespace hf {

int exit_code_of(const std::exception& error) noexcept {
  if (const auto* e = dynamic_cast<const Error*>(&error)) return static_cast<int>(e->exit_code());
  return static_cast<int>(ExitCode::bug);
}

void abort_job(const std::exception& error) noexcept {
  const int code = exit_code_of(error);
  try {
    spdlog::error("{}", error.what());
  } catch (...) {
    std::fprintf(stderr, "error: %s\n", error.what());
  }
  std::fflush(nullptr);
  int initialized = 0, finalized = 0, size = 1;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized && !finalized) {
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > 1) MPI_Abort(MPI_COMM_WORLD, code);
  }
  _exit(code);
}

}  // namespace hf
