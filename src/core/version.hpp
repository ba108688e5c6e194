// The version of the program.
#pragma once

namespace hf {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace hf
