#include "table/static_store.hpp"

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "table/optimizer.hpp"

namespace hf {

StaticStore::StaticStore(const TableSpec& spec, std::uint32_t num_shards, std::span<const ShardId> owned)
    : name_(spec.name),
      rows_(spec.rows),
      record_floats_(spec.dim + optimizer_slots(spec.optimizer.kind, spec.dim)),
      hash_(TableKind::static_rows, spec.rows, num_shards),
      vectorises_(hash_.vectorises()),
      base_(num_shards, nullptr) {
  for (const ShardId s : owned) rows_here_ += hash_.shard_rows(s);
  memory_ = Memory(rows_here_ * record_floats_ * sizeof(float));
  const RowInit init(spec);
  const ApplyArgs start{.learning_rate = spec.optimizer.learning_rate};
  float* record = memory_.floats();
  for (const ShardId s : owned) {
    base_[s.value] = record;
    for (std::uint64_t i = 0, n = hash_.shard_rows(s); i < n; ++i, record += record_floats_) {
      init.fill(hash_.id_at(s, i), record);
      init_optimizer_state(spec.optimizer, spec.dim, start, record);
    }
  }
}

void StaticStore::check(std::span<const RowId> ids) const {
  // One pass that vectorises: the top bit of id or of rows - 1 - id is set for an id ≥ rows.
  const std::uint64_t last = rows_ - 1;
  std::uint64_t bits = 0;
  for (const RowId id : ids) bits |= id | (last - id);
  if ((bits >> 63) == 0 || ids.empty()) return;
  const auto bad = std::find_if(ids.begin(), ids.end(), [this](RowId id) { return id >= rows_; });
  throw DataError("table \"" + name_ + "\": expected an id below " + std::to_string(rows_) +
                  " (its rows), found " + std::to_string(*bad));
}

void StaticStore::not_owned(RowId id, ShardId shard) const {
  HF_CHECK(false, "table \"" + name_ + "\": row " + std::to_string(id) + " belongs to shard " +
                      std::to_string(shard.value) + ", which this server does not own");
  __builtin_unreachable();
}

}  // namespace hf
