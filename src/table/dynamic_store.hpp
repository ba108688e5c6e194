// Records of a dynamic table: per shard an open-addressing index (id → record number) and records in slabs.
//
// Index: packed entries of 12 bytes at any capacity; home = high half of hash · capacity, linear probing,
// load ≤ 13/16, growth by 1.22.
// Slabs: the record numbers are cut like floating point numbers, 16 slabs for each doubling, so that a
// shard reserves at most 1/16 more than it holds (16 records at the start) and an address is a few shifts
// away.
// Invariants: a record's address never changes; record numbers are given in the order of creation.
// Threading: not thread-safe.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/table_spec.hpp"
#include "routing/row_hash.hpp"
#include "table/memory.hpp"
#include "table/row_init.hpp"

namespace hf {

class DynamicStore {
 public:
  DynamicStore(const TableSpec& spec, std::uint32_t num_shards, std::span<const ShardId> owned);

  /// Every id is possible in a dynamic table; here to match StaticStore.
  void check(std::span<const RowId>) const noexcept {}

  /// Starts loading the index entries of `count` ids.
  void prefetch_index(const RowId* ids, std::size_t count) const noexcept;
  /// Addresses of `count` records, nullptr for rows that do not exist.
  void find(const RowId* ids, std::size_t count, float** records) const;
  /// The same; rows that do not exist are created.
  void find_or_create(const RowId* ids, std::size_t count, float** records);

  std::uint64_t rows() const noexcept { return rows_here_; }
  std::uint64_t shard_rows(ShardId shard) const noexcept { return shards_[shard.value].count; }
  /// Ids of a shard in the order of creation.
  std::vector<RowId> ids_of(ShardId shard) const;
  const float* record_at(ShardId shard, std::uint64_t number) const noexcept {
    return address(shards_[shard.value], static_cast<std::uint32_t>(number));
  }
  std::uint64_t memory_bytes() const noexcept;

  const RowInit& init() const noexcept { return init_; }

 private:
  struct [[gnu::packed]] Entry {
    RowId id;
    std::uint32_t number_plus_1;  // 0 = empty
  };
  static_assert(sizeof(Entry) == 12);
  struct Shard {
    Memory index;  // Entry[capacity]
    std::uint64_t capacity = 0;
    std::uint32_t count = 0;
    std::uint32_t reserved = 0;  // records that the slabs hold
    bool owned = false;
    std::vector<float*> slabs;

    Entry* entries() const noexcept { return reinterpret_cast<Entry*>(index.bytes()); }
  };
  static constexpr std::uint32_t kSteps = 16;         // slabs for each doubling
  static constexpr std::uint32_t kFirstRecords = 16;  // records of each of the first slabs
  static constexpr std::uint32_t kBias = kSteps * kFirstRecords;
  static constexpr int kBiasLog = 8;

  struct Place {
    std::uint32_t slab, offset;
  };
  static Place place(std::uint32_t number) noexcept {
    const std::uint64_t x = static_cast<std::uint64_t>(number) + kBias;
    const int exponent = 63 - std::countl_zero(x);
    const int shift = exponent - 4;
    const auto step = static_cast<std::uint32_t>(x >> shift) - kSteps;
    return {static_cast<std::uint32_t>(exponent - kBiasLog) * kSteps + step,
            static_cast<std::uint32_t>(x & ((std::uint64_t{1} << shift) - 1))};
  }
  static std::uint32_t slab_records(std::size_t slab) noexcept {
    return kFirstRecords << static_cast<std::uint32_t>(slab / kSteps);
  }
  float* address(const Shard& shard, std::uint32_t number) const noexcept {
    const Place p = place(number);
    return shard.slabs[p.slab] + static_cast<std::size_t>(p.offset) * record_floats_;
  }
  static std::uint64_t home(const Shard& shard, std::uint64_t mixed) noexcept {
    // The high bits of the mix chose the shard; a second multiplication makes fresh ones.
    return multiply_high(mixed * 0x9e3779b97f4a7c15ULL, shard.capacity);
  }

  const Shard& shard_of(RowId id, std::uint64_t mixed) const;
  float* find_one(const Shard& shard, RowId id, std::uint64_t mixed) const noexcept;
  static void insert(Shard& shard, RowId id, std::uint64_t mixed, std::uint32_t number_plus_1) noexcept;
  float* create(Shard& shard, RowId id, std::uint64_t mixed);
  static void grow_index(Shard& shard);

  TableSpec spec_;
  std::uint32_t record_floats_;
  RowHash hash_;
  RowInit init_;
  std::uint64_t rows_here_ = 0;
  Arena arena_;
  std::vector<Shard> shards_;  // by shard id, those of other servers empty
};

}  // namespace hf
