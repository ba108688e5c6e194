// Loops over records whose addresses are known: specialised for the usual dims and for each optimizer,
// chosen once per table. Each step of a loop also requests the lines of a record that comes later, so that
// the requests are spread evenly over the work and never queue.
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "table/optimizer_kernels.hpp"

namespace hf {

/// Requests all lines of `bytes` bytes at p.
template <int Write>
inline void prefetch_lines(const float* p, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  const auto* c = reinterpret_cast<const char*>(p);
  for (std::size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(c + at, Write, 3);
  // Records of whole lines are aligned to lines, others may end in one line more.
  if (bytes % kLine != 0) __builtin_prefetch(c + bytes - 1, Write, 3);
}

/// Copies `count` rows of `dim` floats to out, requesting the rows of ahead[0 … count). Shape of out: [count,
/// dim].
using CopyRows = void (*)(std::uint32_t dim, float* const* records, float* const* ahead, std::size_t count,
                          float* out);
/// One optimizer step on each of `count` records, requesting those of ahead[0 … count). Shape of grads:
/// [count, dim].
using StepRows = void (*)(const kernels::StepParams& params, std::uint32_t dim, const float* grads,
                          float* const* records, float* const* ahead, std::size_t count);

CopyRows select_copy(std::uint32_t dim) noexcept;
StepRows select_step(OptimizerKind kind, std::uint32_t dim) noexcept;

}  // namespace hf
