// Full checkpoints on disk: one directory per step with a file per shard and a manifest, and a name for the
// newest.
//
//   DIR/latest                               text: name of the newest complete step directory
//   DIR/step_000001000/shard_00017.full.h5   every row of every table in that shard
//   DIR/step_000001000/manifest.json         written last: a directory without it is no checkpoint
//
// shard file := root@{format = "hyperframes-shard", format_version, shard, tables}
//   /table_K@{name, spec (TableSpec as JSON), rows}    K = 0 … tables-1
//     ids u64 [rows], records f32 [rows, dim + optimizer slots]
// manifest := {"crc32c": 8 hex digits of the text of "manifest" (compact, keys sorted), "manifest": Manifest}
//
// Invariants: files are immutable once named (`latest` is replaced); a named file is complete and durable.
// Threading: shards may be written by different threads or processes at once; a table by its owner only.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/table_spec.hpp"
#include "core/types.hpp"
#include "table/table.hpp"

namespace hf {

struct ShardFile {
  std::string name;  ///< inside the step directory
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;  ///< of the whole file
  std::uint64_t rows = 0;    ///< over all tables
  bool operator==(const ShardFile&) const = default;
};

struct Manifest {
  Step step = 0;
  std::uint32_t num_shards = 0;
  std::string config_hash, version;
  std::string created;  ///< UTC, see utc_now()
  std::vector<TableSpec> tables;
  std::vector<ShardFile> shards;
  nlohmann::json dense_layout;  ///< the caller's own
  bool operator==(const Manifest&) const = default;
};

/// "DIR/step_000001000".
std::string step_directory(const std::string& checkpoint_dir, Step step);
/// "shard_00017.full.h5".
std::string shard_file_name(ShardId shard);
/// "2025-01-31T23:59:59Z".
std::string utc_now();

/// Creates the directory where needed. Requires: each table holds the shard; names are unique.
/// Throws: IoError with the system's reason (disk full, not writable).
ShardFile write_shard(const std::string& step_dir, ShardId shard, const std::vector<const Table*>& tables);

/// Verifies size, checksum and contents, then restores the rows into the tables of the same names; tables of
/// the file that are not asked for are left out. Requires: each table holds the shard.
/// Throws: FormatError naming the file, with expected and found (damage; dim, optimizer, kind or rows of a
/// table; a table that is missing); IoError when the file is missing or unreadable.
void read_shard(const std::string& step_dir, const ShardFile& file, const std::vector<Table*>& tables);

/// Last of a checkpoint's files. Throws: IoError.
void write_manifest(const std::string& step_dir, const Manifest& manifest);
/// Throws: FormatError (damaged, or of another step than a directory step_N says); IoError.
Manifest read_manifest(const std::string& step_dir);

/// Makes `step` the newest. Requires: its manifest was written. Throws: IoError.
void publish_latest(const std::string& checkpoint_dir, Step step);

/// The step directory behind "latest", or behind a path: a step directory, or a checkpoint directory (its
/// latest).
/// Throws: IoError when there is none; FormatError when `latest` names no complete checkpoint.
std::string resolve_checkpoint(const std::string& checkpoint_dir, const std::string& which);

}  // namespace hf
