// Row id → a small number, for the ids of one batch: open addressing, emptied in no time by a generation
// stamp, memory kept from batch to batch.
// Invariants: at most half of the slots are used; a slot counts only where its stamp is the current
// generation.
// Threading: not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace hf {

class IdMap {
 public:
  IdMap() : slots_(kSmallest) {}

  void clear() noexcept {
    count_ = 0;
    if (++generation_ != 0) return;
    for (Slot& s : slots_) s.stamp = 0;  // once in 2^32 generations
    generation_ = 1;
  }

  void prefetch(RowId id) const noexcept { __builtin_prefetch(&slots_[home(id)], 1); }

  /// The number of `id`; where it is new, it gets the next one: 0, 1, 2, … in the order of insertion.
  std::uint32_t insert(RowId id) {
    if (2 * (count_ + 1) > slots_.size()) [[unlikely]]
      grow();
    Slot& slot = find(id);
    if (slot.stamp != generation_) slot = {id, generation_, static_cast<std::uint32_t>(count_++)};
    return slot.number;
  }

  std::size_t size() const noexcept { return count_; }

 private:
  struct Slot {
    RowId id = 0;
    std::uint32_t stamp = 0;
    std::uint32_t number = 0;
  };
  static constexpr std::size_t kSmallest = 64;

  std::size_t home(RowId id) const noexcept {
    std::uint64_t x = id * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    return x >> shift_;
  }
  Slot& find(RowId id) noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = home(id);
    while (slots_[at].stamp == generation_ && slots_[at].id != id) at = (at + 1) & mask;
    return slots_[at];
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const Slot& s : old)
      if (s.stamp == generation_) find(s.id) = s;
  }

  std::vector<Slot> slots_;
  int shift_ = 64 - std::countr_zero(kSmallest);
  std::size_t count_ = 0;
  std::uint32_t generation_ = 1;
};

}  // namespace hf
