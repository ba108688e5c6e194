// The distinct ids of a batch, so that a row travels once however often the batch names it.
// Threading: not thread-safe; memory is reused from call to call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/types.hpp"
#include "table/id_map.hpp"

namespace hf {

class UniqueIds {
 public:
  /// unique: the distinct ids in the order of their first occurrence; inverse[i]: position of ids[i] in
  /// `unique`.
  void build(std::span<const RowId> ids, std::vector<RowId>& unique, std::vector<std::uint32_t>& inverse);

 private:
  IdMap map_;
};

}  // namespace hf
