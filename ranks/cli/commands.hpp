// From the command line to the work.
#pragma once

namespace hf {

/// Returns the exit code.
int run_command_line(int argc, const char* const* argv);

}  // namespace hf
