// `hyperframes --version`.
#pragma once

#include <string>

namespace hf {

/// The program's version and those of the libraries it runs with, the BLAS, and the transports compiled in.
std::string version_text();

}  // namespace hf
