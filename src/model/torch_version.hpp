// The LibTorch in use.
#pragma once

#include <string>

namespace hf {

std::string torch_version();

}  // namespace hf
