// Settings for Open MPI that the program makes itself, before MPI_Init, so that a plain `mpirun` on one node, or the bare
// program, starts quietly: without them btl/tcp is set up although nobody uses it, and complains on machines whose
// addresses do not reach each other ("Unable to find reachable pairing").
// Threading: setenv; before other threads start.
#pragma once

#include <map>
#include <string>

namespace hf {

/// What to set, as a function of the environment and of the parameter files' assignments:
///   one node (the launcher's local size is the world's size, or there is no launcher): OMPI_MCA_btl=self,sm
///   several nodes, another launcher's job, or a choice of the user's for btl, pml, mtl or osc: nothing.
/// A choice is an OMPI_MCA_ variable (mpirun --mca arrives as one) or a line of a parameter file; a file that only
/// leaves out components ("^uct,openib") chooses none, unless it leaves out self or sm.
std::map<std::string, std::string> mpi_settings(const std::map<std::string, std::string>& environment,
                                                const std::map<std::string, std::string>& parameter_files);

/// The assignments of one parameter file's text: NAME = VALUE lines, # comments.
std::map<std::string, std::string> parse_parameter_file(const std::string& text);

/// Reads environment and parameter files of this process and applies mpi_settings().
void prepare_mpi_environment();

}  // namespace hf
