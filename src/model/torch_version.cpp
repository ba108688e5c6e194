#include "model/torch_version.hpp"

#include <torch/version.h>

namespace hf {

std::string torch_version() { return TORCH_VERSION; }

}  // namespace hf
