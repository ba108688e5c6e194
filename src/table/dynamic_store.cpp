#include "table/dynamic_store.hpp"

#include <limits>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "table/optimizer.hpp"

namespace hf {

DynamicStore::DynamicStore(const TableSpec& spec, std::uint32_t num_shards, std::span<const ShardId> owned)
    : spec_(spec),
      record_floats_(spec.dim + optimizer_slots(spec.optimizer.kind, spec.dim)),
      hash_(TableKind::dynamic, 0, num_shards),
      init_(spec),
      shards_(num_shards) {
  static_assert(kBias == 1U << kBiasLog);
  for (const ShardId s : owned) shards_[s.value].owned = true;
}

const DynamicStore::Shard& DynamicStore::shard_of(RowId id, std::uint64_t mixed) const {
  const ShardId s = hash_.dynamic_shard(mixed);
  const Shard& shard = shards_[s.value];
  if (!shard.owned) [[unlikely]]
    HF_CHECK(false, "table \"" + spec_.name + "\": row " + std::to_string(id) + " belongs to shard " +
                        std::to_string(s.value) + ", which this server does not own");
  return shard;
}

void DynamicStore::prefetch_index(const RowId* ids, std::size_t count) const noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t mixed = mix64(ids[i]);
    const Shard& shard = shards_[hash_.dynamic_shard(mixed).value];
    if (shard.capacity == 0) continue;
    // A search is three entries long in the mean, so it often ends in the next line.
    const Entry* entry = shard.entries() + home(shard, mixed);
    __builtin_prefetch(entry);
    __builtin_prefetch(reinterpret_cast<const char*>(entry) + 48);
  }
}

float* DynamicStore::find_one(const Shard& shard, RowId id, std::uint64_t mixed) const noexcept {
  if (shard.capacity == 0) return nullptr;
  const Entry* entries = shard.entries();
  for (std::uint64_t at = home(shard, mixed);; at = at + 1 == shard.capacity ? 0 : at + 1) {
    const Entry& entry = entries[at];
    if (entry.number_plus_1 == 0) return nullptr;
    if (entry.id == id) return address(shard, entry.number_plus_1 - 1);
  }
}

void DynamicStore::find(const RowId* ids, std::size_t count, float** records) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t mixed = mix64(ids[i]);
    records[i] = find_one(shard_of(ids[i], mixed), ids[i], mixed);
  }
}

void DynamicStore::find_or_create(const RowId* ids, std::size_t count, float** records) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t mixed = mix64(ids[i]);
    const Shard& shard = shard_of(ids[i], mixed);
    records[i] = find_one(shard, ids[i], mixed);
    if (records[i] == nullptr) records[i] = create(shards_[hash_.dynamic_shard(mixed).value], ids[i], mixed);
  }
}

void DynamicStore::insert(Shard& shard, RowId id, std::uint64_t mixed, std::uint32_t number_plus_1) noexcept {
  Entry* entries = shard.entries();
  std::uint64_t at = home(shard, mixed);
  while (entries[at].number_plus_1 != 0) at = at + 1 == shard.capacity ? 0 : at + 1;
  entries[at].id = id;
  entries[at].number_plus_1 = number_plus_1;
}

void DynamicStore::grow_index(Shard& shard) {
  const std::uint64_t capacity = shard.capacity + shard.capacity * 2 / 9 + 16;
  Memory fresh(capacity * sizeof(Entry));
  const Memory old = std::exchange(shard.index, std::move(fresh));
  const std::uint64_t old_capacity = std::exchange(shard.capacity, capacity);
  const auto* entries = reinterpret_cast<const Entry*>(old.bytes());
  // Homes keep their order when the capacity changes, so this walks both arrays front to back.
  for (std::uint64_t i = 0; i < old_capacity; ++i)
    if (entries[i].number_plus_1 != 0)
      insert(shard, entries[i].id, mix64(entries[i].id), entries[i].number_plus_1);
}

float* DynamicStore::create(Shard& shard, RowId id, std::uint64_t mixed) {
  HF_CHECK(shard.count < std::numeric_limits<std::uint32_t>::max() - kBias,
           "fewer than 2^32 rows in a shard");
  if ((shard.count + 1) * std::uint64_t{16} > shard.capacity * 13) grow_index(shard);
  if (shard.count == shard.reserved) {
    const std::uint32_t records = slab_records(shard.slabs.size());
    shard.slabs.push_back(
        arena_.allocate(static_cast<std::size_t>(records) * record_floats_ * sizeof(float)));
    shard.reserved += records;
  }
  float* record = address(shard, shard.count);
  init_.fill(id, record);
  init_optimizer_state(spec_.optimizer, spec_.dim, ApplyArgs{.learning_rate = spec_.optimizer.learning_rate},
                       record);
  insert(shard, id, mixed, ++shard.count);
  ++rows_here_;
  return record;
}

std::vector<RowId> DynamicStore::ids_of(ShardId shard_id) const {
  const Shard& shard = shards_[shard_id.value];
  std::vector<RowId> ids(shard.count);
  const Entry* entries = shard.entries();
  for (std::uint64_t i = 0; i < shard.capacity; ++i)
    if (entries[i].number_plus_1 != 0) ids[entries[i].number_plus_1 - 1] = entries[i].id;
  return ids;
}

std::uint64_t DynamicStore::memory_bytes() const noexcept {
  std::uint64_t bytes = shards_.size() * sizeof(Shard) + arena_.reserved_bytes();
  for (const Shard& shard : shards_)
    bytes += shard.index.reserved_bytes() + shard.slabs.capacity() * sizeof(float*);
  return bytes;
}

}  // namespace hf
