// The integers of the system that must not be mixed up, as distinct types.
// Threading: plain values.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>

namespace hf {

/// An integer with a name. Explicit in both directions, ordered, hashable.
template <class Tag, class Int>
struct Strong {
  using value_type = Int;
  Int value{};
  constexpr Strong() = default;
  constexpr explicit Strong(Int v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
};

using Rank = Strong<struct RankTag, std::int32_t>;           ///< position in MPI_COMM_WORLD
using ServerId = Strong<struct ServerIdTag, std::uint32_t>;  ///< 0 … servers-1, in rank order
using WorkerId = Strong<struct WorkerIdTag, std::uint32_t>;  ///< 0 … workers-1, in rank order
using ShardId = Strong<struct ShardIdTag, std::uint32_t>;    ///< 0 … num_shards-1
using TableId = Strong<struct TableIdTag, std::uint32_t>;    ///< in order of creation, the same on every rank

/// An id of a row inside its table, as the user knows it. 64 bits; static tables use 0 … rows-1.
using RowId = std::uint64_t;

/// A worker's clock: the number of steps it has completed.
using Step = std::uint64_t;
inline constexpr Step kClockInfinite = std::numeric_limits<Step>::max();

/// Staleness bound meaning "never wait".
inline constexpr std::uint64_t kStalenessInfinite = std::numeric_limits<std::uint64_t>::max();

}  // namespace hf

template <class Tag, class Int>
struct std::hash<hf::Strong<Tag, Int>> {
  std::size_t operator()(const hf::Strong<Tag, Int>& s) const noexcept { return std::hash<Int>{}(s.value); }
};
