#include "table/row_init.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/random.hpp"
#include "table/table.hpp"

namespace hf {
namespace {

struct Pair {
  float even, odd;
};

Pair uniform_pair(std::uint64_t word, float scale) noexcept {
  return {(2.0F * uniform_float(word) - 1.0F) * scale, (2.0F * uniform_float(word << 24) - 1.0F) * scale};
}

Pair normal_pair(std::uint64_t word, float scale) noexcept {
  const float radius = scale * std::sqrt(-2.0F * std::log(1.0F - uniform_float(word)));
  const float angle = 2.0F * std::numbers::pi_v<float> * uniform_float(word << 24);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

template <class MakePair>
void fill_pairs(std::uint64_t key, std::uint32_t columns, float* out, const MakePair& make_pair) noexcept {
  for (std::uint32_t j = 0; j < columns / 2; ++j) {
    const Pair p = make_pair(mix64(key + j));
    out[2 * j] = p.even;
    out[2 * j + 1] = p.odd;
  }
  if (columns % 2 != 0) out[columns - 1] = make_pair(mix64(key + columns / 2)).even;
}

}  // namespace

RowInit::RowInit(const TableSpec& spec)
    : kind_(spec.init.kind),
      dim_(spec.dim),
      filled_(spec.dim - std::min(spec.dim, spec.init.zero_tail)),
      scale_(spec.init.scale),
      key_(mix64(spec.init.seed, XXH64(spec.name.data(), spec.name.size(), 0))) {}

void RowInit::fill(RowId id, float* out) const noexcept {
  std::uint32_t filled = filled_;
  const std::uint64_t key = mix64(key_, id);
  switch (kind_) {
    case InitKind::zeros:
      filled = 0;
      break;
    case InitKind::uniform:
      fill_pairs(key, filled, out, [this](std::uint64_t word) { return uniform_pair(word, scale_); });
      break;
    case InitKind::normal:
      fill_pairs(key, filled, out, [this](std::uint64_t word) { return normal_pair(word, scale_); });
      break;
  }
  std::fill(out + filled, out + dim_, 0.0F);
}

void initial_row(const TableSpec& spec, RowId id, float* out) noexcept { RowInit(spec).fill(id, out); }

}  // namespace hf
