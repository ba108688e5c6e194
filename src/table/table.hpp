// The rows of one table that one server holds: storage, row index and row optimizer.
//
// Storage: a row record is `dim` weights followed by `optimizer_slots` floats of state, contiguous, so that
// gather and apply touch one place.
// Static tables: one dense, huge-page-advised array per shard, position from RowHash, no index, all rows
// initialised at construction.
// Dynamic tables: per shard an open-addressing index (id → record) of arbitrary capacity that grows by
// small steps, and records in slabs that never move.
// Invariants:
//   1. a record's address never changes while the table lives;
//   2. the initial weights are a pure function of (spec.init.seed, spec.name, id, column);
//      optimizer state starts as its optimizer says;
//   3. memory: static ≤ 1.02 ×, dynamic ≤ 1.5 × rows · (dim + slots) · 4 bytes (for ≥ 10,000 rows).
// Threading: not thread-safe; one service thread owns it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/table_spec.hpp"
#include "core/types.hpp"
#include "routing/row_hash.hpp"

namespace hf {

/// What an update needs beside ids and gradients.
struct ApplyArgs {
  float learning_rate = 0.01F;  ///< of this step, schedule applied
  float grad_scale = 1.0F;      ///< multiplies every gradient (1 / samples)
  Step step = 1;                ///< 1-based; adam's bias correction (global step, as torch SparseAdam)
};

class Table {
 public:
  /// Requires: owned shards unique and < num_shards.
  Table(TableSpec spec, std::uint32_t num_shards, std::span<const ShardId> owned);
  ~Table();
  Table(Table&&) noexcept;
  Table& operator=(Table&&) noexcept;

  const TableSpec& spec() const noexcept;
  std::uint32_t record_floats() const noexcept;  ///< dim + optimizer slots
  std::span<const ShardId> shards() const noexcept;
  std::uint64_t rows() const noexcept;  ///< rows that exist here
  /// Bytes reserved for rows, index and slabs.
  std::uint64_t memory_bytes() const noexcept;

  /// Copies the weights of `ids` to `out`. Shape of out: [ids, dim]. A dynamic row that does not exist yet is
  /// created when `admit`, otherwise its initial value is given and nothing is stored. Software-prefetched.
  /// Throws: DataError naming table and id for a static id ≥ rows. Requires: every id belongs to an owned
  /// shard.
  void gather(std::span<const RowId> ids, float* out, bool admit);

  /// One optimizer step on each row. Shape of grads: [ids, dim]. Requires: ids unique within a call (later
  /// duplicates are separate steps). Dynamic rows that do not exist are created first.
  /// Throws: as gather.
  void apply(std::span<const RowId> ids, const float* grads, const ApplyArgs& args);

  /// Every row of a shard, ascending by id for static tables, in creation order for dynamic ones.
  /// record: dim weights, then optimizer slots.
  void for_each_row(ShardId shard,
                    const std::function<void(RowId, std::span<const float> record)>& visit) const;

  /// Overwrites (static) or creates (dynamic) rows from whole records. Shape of records: [ids,
  /// record_floats()].
  void restore(std::span<const RowId> ids, const float* records);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The weights a fresh row starts with. Shape of out: [dim].
void initial_row(const TableSpec& spec, RowId id, float* out) noexcept;

}  // namespace hf
