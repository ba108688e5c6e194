// The end of a job on an error: one line, then MPI_Abort with the error's exit code (never a collective call).
#pragma once

#include <exception>

namespace hf {

/// Exit code of an exception: hf::Error's own, 70 for anything else.
int exit_code_of(const std::exception& error) noexcept;

/// Logs the error and ends all ranks. With one rank or before MPI_Init: leaves by _exit.
[[noreturn]] void abort_job(const std::exception& error) noexcept;

}  // namespace hf
