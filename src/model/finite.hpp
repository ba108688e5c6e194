// Is every element a number? Asked of every loss and gradient before it is pushed.
// Threading: pure function.
#pragma once

#include <torch/torch.h>

namespace hf {

/// False when any element is NaN or ±Inf; true for an empty or integral tensor.
/// Cost: one read of the tensor, at memory speed.
bool all_finite(const torch::Tensor& tensor);

/// The same of a plain array.
bool all_finite(const float* values, std::size_t count) noexcept;

}  // namespace hf
