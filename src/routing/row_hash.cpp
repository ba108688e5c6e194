#include "routing/row_hash.hpp"

#include <bit>
#include <limits>

#include "core/error.hpp"

namespace hf {

RowHash::RowHash(TableKind kind, std::uint64_t rows, std::uint32_t num_shards)
    : kind_(kind), num_shards_(num_shards), rows_(kind == TableKind::static_rows ? rows : 0) {
  HF_CHECK(num_shards > 0 && num_shards <= (1U << 31), "1 to 2^31 shards");
  if (std::has_single_bit(num_shards)) shift_ = std::countr_zero(num_shards);
  reciprocal_ = std::numeric_limits<std::uint64_t>::max() / num_shards;
  seed_ = static_cast<std::uint32_t>(mix64(rows_));
}

std::uint64_t RowHash::shard_rows(ShardId shard) const noexcept {
  const std::uint64_t full_blocks = divide(rows_);
  const auto rest = static_cast<std::uint32_t>(rows_ - full_blocks * num_shards_);
  const std::uint32_t turn = rotation(full_blocks);
  const std::uint32_t place = shard.value >= turn ? shard.value - turn : shard.value + num_shards_ - turn;
  return full_blocks + (place < rest ? 1 : 0);
}

RowId RowHash::id_at(ShardId shard, std::uint64_t index) const noexcept {
  const std::uint32_t turn = rotation(index);
  const std::uint32_t place = shard.value >= turn ? shard.value - turn : shard.value + num_shards_ - turn;
  return index * num_shards_ + place;
}

}  // namespace hf
