// One binary for every rank and every subcommand. Each subcommand's work is elsewhere: see cli/commands.hpp.
#include "model/runtime.hpp"
#include "ranks/cli/commands.hpp"

int main(int argc, char** argv) {
  hf::tune_allocator();
  return hf::run_command_line(argc, argv);
}
