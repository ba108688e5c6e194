// Records of a static table: one mapping for all owned shards, each shard a dense array in it.
// Invariants: every row exists from construction on; a record's address never changes.
// Threading: not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/table_spec.hpp"
#include "routing/row_hash.hpp"
#include "table/memory.hpp"
#include "table/row_init.hpp"

namespace hf {

class StaticStore {
 public:
  StaticStore(const TableSpec& spec, std::uint32_t num_shards, std::span<const ShardId> owned);

  /// Throws: DataError for an id ≥ rows.
  void check(std::span<const RowId> ids) const;

  /// Addresses of `count` records. Requires: checked ids of owned shards (HF_CHECK).
  void find(const RowId* ids, std::size_t count, float** records) const {
    if (vectorises_) {
      std::array<std::uint32_t, kBatch> shards, indices;
      for (std::size_t begin = 0; begin < count; begin += kBatch) {
        const std::size_t n = std::min(kBatch, count - begin);
        hash_.positions32(ids + begin, n, shards.data(), indices.data());
        for (std::size_t i = 0; i < n; ++i)
          records[begin + i] = record(ids[begin + i], shards[i], indices[i]);
      }
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        const auto position = hash_.position(ids[i]);
        records[i] = record(ids[i], position.shard.value, position.index);
      }
    }
  }

  std::uint64_t rows() const noexcept { return rows_here_; }
  std::uint64_t shard_rows(ShardId shard) const noexcept { return hash_.shard_rows(shard); }
  RowId id_at(ShardId shard, std::uint64_t index) const noexcept { return hash_.id_at(shard, index); }
  const float* record_at(ShardId shard, std::uint64_t index) const noexcept {
    return base_[shard.value] + index * record_floats_;
  }
  std::uint64_t memory_bytes() const noexcept {
    return memory_.reserved_bytes() + base_.size() * sizeof(float*);
  }

 private:
  static constexpr std::size_t kBatch = 32;

  float* record(RowId id, std::uint32_t shard, std::uint64_t index) const {
    float* base = base_[shard];
    if (base == nullptr) [[unlikely]]
      not_owned(id, ShardId(shard));
    return base + index * record_floats_;
  }
  [[noreturn]] void not_owned(RowId id, ShardId shard) const;

  std::string name_;
  std::uint64_t rows_;
  std::uint64_t rows_here_ = 0;
  std::uint32_t record_floats_;
  RowHash hash_;
  bool vectorises_;
  Memory memory_;
  std::vector<float*> base_;  // by shard; nullptr = not owned
};

}  // namespace hf
