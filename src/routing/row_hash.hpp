// (table, row) → shard, and for static tables the row's position inside its shard. A fixed function: the
// same on every rank, in every run, for any number of servers.
//
// Static tables: ids are cut into blocks of num_shards consecutive ids; block a gives one id to every
// shard, rotated by a hash r of a: shard = (id mod num_shards + r(a)) mod num_shards, position = a = id div
// num_shards. This is a bijection, so a shard is a dense array and needs no index; shards differ by at most
// one row; positions ascend with ids. The rotation makes strided id sets spread (a plain affine map modulo
// rows does not: it keeps every stride that divides rows and num_shards on one shard), and neighbouring
// ids, which are the hottest of a vocabulary that is sorted by count, lie on different shards. The rotation
// depends on the number of rows too, so that the few rows of small tables do not all lie on the same
// shards.
// Dynamic tables: shard = high bits of a 64-bit mix of the id, scaled to num_shards.
// Cost: no division: a shift where num_shards is a power of two, a multiplication by a precomputed
// reciprocal otherwise.
// Threading: immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/random.hpp"
#include "core/table_spec.hpp"
#include "core/types.hpp"

namespace hf {

/// The high half of a 64 × 64 bit product.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

class RowHash {
 public:
  /// Requires: num_shards > 0. `rows` is ignored for dynamic tables.
  RowHash(TableKind kind, std::uint64_t rows, std::uint32_t num_shards);

  ShardId shard(RowId id) const noexcept {
    if (kind_ == TableKind::dynamic) return dynamic_shard(mix64(id));
    return position(id).shard;
  }

  /// Static tables only. Requires: id < rows.
  struct Position {
    ShardId shard;
    std::uint64_t index;
  };
  Position position(RowId id) const noexcept {
    const std::uint64_t block = divide(id);
    const auto place = static_cast<std::uint32_t>(id - block * num_shards_);
    const std::uint32_t sum = place + rotation(block);  // num_shards ≤ 2^31: no overflow
    return {ShardId(sum >= num_shards_ ? sum - num_shards_ : sum), block};
  }

  /// The same for `count` ids below 2^32, where num_shards is a power of two (see vectorises()).
  void positions32(const RowId* ids, std::size_t count, std::uint32_t* shards,
                   std::uint32_t* indices) const noexcept {
    const std::uint32_t mask = num_shards_ - 1;
    const auto shift = static_cast<std::uint32_t>(shift_);
    const std::uint32_t seed = seed_;
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = static_cast<std::uint32_t>(ids[i]);
      const std::uint32_t block = id >> shift;  // shift ≤ 31
      // (x · 2^shift) >> 32 of `rotation`, in two shifts because shift may be 0.
      const std::uint32_t turn = (mix32(block + seed) >> 1) >> (31 - shift);
      shards[i] = ((id & mask) + turn) & mask;
      indices[i] = block;
    }
  }
  bool vectorises() const noexcept { return shift_ >= 0 && rows_ <= (std::uint64_t{1} << 32); }

  /// Dynamic tables: the shard of an id whose mix64 is known already.
  ShardId dynamic_shard(std::uint64_t mixed_id) const noexcept {
    return ShardId(static_cast<std::uint32_t>(multiply_high(mixed_id, num_shards_)));
  }

  /// Static tables only: number of rows of a shard, and the id at a position (the inverse of `position`).
  std::uint64_t shard_rows(ShardId shard) const noexcept;
  RowId id_at(ShardId shard, std::uint64_t index) const noexcept;

  std::uint32_t num_shards() const noexcept { return num_shards_; }

 private:
  std::uint64_t divide(std::uint64_t id) const noexcept {
    if (shift_ >= 0) return id >> shift_;
    // reciprocal = floor((2^64 - 1) / d), so the quotient is exact or one too small.
    const std::uint64_t quotient = multiply_high(id, reciprocal_);
    return quotient + (id - quotient * num_shards_ >= num_shards_ ? 1 : 0);
  }
  // 32-bit arithmetic, so that `positions` vectorises.
  static std::uint32_t mix32(std::uint32_t x) noexcept {
    x *= 0x9e3779b1U;
    x ^= x >> 15;
    x *= 0x85ebca77U;
    return x ^ (x >> 16);
  }
  std::uint32_t rotation(std::uint64_t block) const noexcept {
    const auto high = static_cast<std::uint32_t>(block >> 32);
    const std::uint32_t x = mix32((static_cast<std::uint32_t>(block) ^ mix32(high)) + seed_);
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(x) * num_shards_) >> 32);
  }

  TableKind kind_;
  std::uint32_t num_shards_;
  int shift_ = -1;  // log2(num_shards) where that is an integer
  std::uint64_t rows_;
  std::uint64_t reciprocal_ = 0;
  std::uint32_t seed_ = 0;
};

}  // namespace hf
