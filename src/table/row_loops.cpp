#include "table/row_loops.hpp"

#include <cstring>

namespace hf {
namespace {

// optimizer_slots, known to the compiler.
template <OptimizerKind Kind>
constexpr std::size_t optimizer_slots_of(std::size_t dim) noexcept {
  switch (Kind) {
    case OptimizerKind::sgd:
      return 0;
    case OptimizerKind::adagrad:
      return dim;
    case OptimizerKind::rowwise_adagrad:
      return 1;
    case OptimizerKind::adam:
    case OptimizerKind::ftrl:
      return 2 * dim;
  }
  return 0;
}

template <std::uint32_t Dim>
void copy_rows(std::uint32_t dim, float* const* records, float* const* ahead, std::size_t count, float* out) {
  const std::size_t n = Dim != 0 ? Dim : dim;
  for (std::size_t i = 0; i < count; ++i, out += n) {
    prefetch_lines<0>(ahead[i], n * sizeof(float));
    std::memcpy(out, records[i], n * sizeof(float));
  }
}

template <OptimizerKind Kind, std::uint32_t Dim>
void step_rows(const kernels::StepParams& params, std::uint32_t dim, const float* grads,
               float* const* records, float* const* ahead, std::size_t count) {
  const std::size_t n = Dim != 0 ? Dim : dim;
  const std::size_t record_bytes = (n + optimizer_slots_of<Kind>(n)) * sizeof(float);
  // A copy of its own: the compiler then knows that records do not overlap the parameters.
  const kernels::StepParams p = params;
  for (std::size_t i = 0; i < count; ++i, grads += n) {
    prefetch_lines<1>(ahead[i], record_bytes);
    kernels::step_row<Kind, Dim>(p, dim, grads, records[i]);
  }
}

// Calls use.operator()<Dim>() with the dim, or 0 where there is no special loop for it.
template <class Use>
auto with_dim(std::uint32_t dim, const Use& use) {
  switch (dim) {
    case 1:
      return use.template operator()<1>();
    case 4:
      return use.template operator()<4>();
    case 8:
      return use.template operator()<8>();
    case 16:
      return use.template operator()<16>();
    case 17:
      return use.template operator()<17>();
    case 32:
      return use.template operator()<32>();
    case 33:
      return use.template operator()<33>();
    case 64:
      return use.template operator()<64>();
    case 128:
      return use.template operator()<128>();
    default:
      return use.template operator()<0>();
  }
}

template <OptimizerKind Kind>
StepRows select_step_of(std::uint32_t dim) noexcept {
  return with_dim(dim, []<std::uint32_t Dim>() -> StepRows { return &step_rows<Kind, Dim>; });
}

}  // namespace

CopyRows select_copy(std::uint32_t dim) noexcept {
  return with_dim(dim, []<std::uint32_t Dim>() -> CopyRows { return &copy_rows<Dim>; });
}

StepRows select_step(OptimizerKind kind, std::uint32_t dim) noexcept {
  switch (kind) {
    case OptimizerKind::sgd:
      return select_step_of<OptimizerKind::sgd>(dim);
    case OptimizerKind::adagrad:
      return select_step_of<OptimizerKind::adagrad>(dim);
    case OptimizerKind::rowwise_adagrad:
      return select_step_of<OptimizerKind::rowwise_adagrad>(dim);
    case OptimizerKind::adam:
      return select_step_of<OptimizerKind::adam>(dim);
    case OptimizerKind::ftrl:
      return select_step_of<OptimizerKind::ftrl>(dim);
  }
  return nullptr;
}

}  // namespace hf
