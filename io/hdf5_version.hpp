// The HDF5 library in use.
#pragma once

#include <string>

namespace hf {

std::string hdf5_version();

}  // namespace hf
