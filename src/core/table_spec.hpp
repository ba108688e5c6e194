// What a table of embedding rows is: sent from workers to servers at creation, written into checkpoints.
// Threading: plain values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "hyperframes/table_options.hpp"

namespace hf {

struct TableSpec {
  std::string name;
  TableKind kind = TableKind::static_rows;
  std::uint64_t rows = 0;  ///< static tables: number of rows; dynamic tables: 0
  std::uint32_t dim = 0;   ///< floats of one row
  bool wrap_ids = false;   ///< static tables: id modulo rows instead of an error (done by the worker)
  OptimizerSpec optimizer;
  InitSpec init;

  bool operator==(const TableSpec&) const = default;
};

void to_json(nlohmann::json& j, const TableSpec& s);
/// Throws: FormatError naming the key.
void from_json(const nlohmann::json& j, TableSpec& s);

/// The table of the dense network's parameters, on the servers and in checkpoints.
inline constexpr const char* kDenseTable = "dense";

/// What is wrong with the name of an embedding table, "" when nothing is. Names become names in files: no "/", control
/// characters, blanks at the ends, "." and "..", at most 200 bytes; and none that means kDenseTable to a file system
/// without upper and lower case.
std::string table_name_problem(const std::string& name);
/// Equal names have equal keys, and so have those that differ in upper and lower case (ASCII) only.
std::string table_name_key(const std::string& name);

const char* to_string(OptimizerKind kind) noexcept;
const char* to_string(TableKind kind) noexcept;
const char* to_string(InitKind kind) noexcept;
/// Throws: ConfigError listing the valid names.
OptimizerKind optimizer_kind_from_string(const std::string& name);

}  // namespace hf
