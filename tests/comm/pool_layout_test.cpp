#include "comm/pool_layout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "codec/message.hpp"
#include "comm/bell.hpp"
#include "comm_test_support.hpp"

namespace hf {
namespace {

struct Piece {
  std::size_t begin, end;
  std::string name;
};

/// Every piece of every pool: no two may share a byte, all lie inside, all are aligned.
void check_layout(const std::string& letters, std::size_t pool) {
  SCOPED_TRACE(letters + ", pool of " + std::to_string(pool));
  const RoleMap roles = test::role_map(letters);
  const PoolLayout layout(roles, pool);
  EXPECT_EQ(layout.pool_bytes(), pool);
  std::map<std::int32_t, std::vector<Piece>> pools;
  const auto add = [&](Rank rank, std::size_t offset, std::size_t bytes, const std::string& name) {
    pools[rank.value].push_back({offset, offset + bytes, name});
  };
  const auto workers = static_cast<std::uint32_t>(roles.worker_ranks.size());
  const auto servers = static_cast<std::uint32_t>(roles.server_ranks.size());
  for (std::size_t r = 0; r < letters.size(); ++r) {
    const Rank rank{static_cast<std::int32_t>(r)};
    add(rank, PoolLayout::server_bell_offset(), sizeof(Bell), "server bell");
    add(rank, PoolLayout::worker_bell_offset(), sizeof(Bell), "worker bell");
    for (std::uint32_t w = 0; w < workers; ++w) add(rank, PoolLayout::board_offset(WorkerId{w}), 64, "board");
    for (std::size_t peer = 0; peer < letters.size(); ++peer) {
      const std::size_t offset = layout.beat_offset(Rank{static_cast<std::int32_t>(peer)});
      EXPECT_EQ(offset % 8, 0U);
      add(rank, offset, 8, "beat of rank " + std::to_string(peer));
    }
  }
  std::size_t smallest = SIZE_MAX;
  const auto add_ring = [&](const Ring& ring, Rank owner, Rank sender, const std::string& name) {
    EXPECT_EQ(ring.owner, owner) << name;
    EXPECT_EQ(ring.sender, sender) << name;
    EXPECT_GE(ring.slots, 8U) << name;
    EXPECT_GE(ring.slot_bytes, 4096U) << name;
    EXPECT_EQ(ring.slot_bytes % 64, 0U) << name;
    EXPECT_EQ(ring.offset % 64, 0U) << name;
    EXPECT_EQ(ring.credit_offset % 64, 0U) << name;
    smallest = std::min(smallest, ring.slot_bytes);
    add(owner, ring.offset, ring.slots * ring.slot_bytes, name);
    add(sender, ring.credit_offset, 64, "credit of " + name);
  };
  for (std::uint32_t w = 0; w < workers; ++w)
    for (std::uint32_t s = 0; s < servers; ++s) {
      const std::string pair = "worker " + std::to_string(w) + " server " + std::to_string(s);
      const Rank worker = roles.worker_ranks[w], server = roles.server_ranks[s];
      add_ring(layout.request_ring(WorkerId{w}, ServerId{s}), server, worker, "requests of " + pair);
      add_ring(layout.reply_ring(ServerId{s}, WorkerId{w}), worker, server, "replies of " + pair);
    }
  EXPECT_EQ(layout.smallest_slot_bytes(), smallest);
  for (auto& [rank, pieces] : pools) {
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    EXPECT_LE(pieces.back().end, pool) << pieces.back().name << " on rank " << rank;
    // Sorted by their beginnings, any two that overlap make two neighbours that overlap.
    for (std::size_t i = 1; i < pieces.size(); ++i)
      ASSERT_LE(pieces[i - 1].end, pieces[i].begin)
          << pieces[i - 1].name << " and " << pieces[i].name << " on rank " << rank;
  }
}

std::vector<std::string> role_maps() {
  std::vector<std::string> maps = {"h",   "pw",   "wp",  "hh",  "hp",   "hw",      "pww",
                                   "wpw", "pppw", "phw", "whp", "hhhh", "pwhwphhw"};
  maps.push_back(std::string(3, 'p') + std::string(61, 'w'));
  maps.push_back(std::string(24, 'h'));
  std::string random;
  for (std::uint64_t i = 0; i < 40; ++i) random += "pwh"[mix64(i) % 3];
  maps.push_back(random);
  return maps;
}

TEST(PoolLayout, NoTwoPiecesOverlap) {
  for (const std::string& letters : role_maps()) {
    const std::size_t smallest = test::smallest_pool(test::role_map(letters));
    for (const std::size_t pool : {smallest, smallest + 1, smallest + 4095, smallest * 3 + 777,
                                   std::size_t{64} << 20, std::size_t{1} << 30})
      check_layout(letters, std::max(pool, smallest));
  }
}

TEST(PoolLayout, TooSmallAPoolNamesTheSmallestThatWorks) {
  for (const std::string& letters : role_maps()) {
    const RoleMap roles = test::role_map(letters);
    const std::size_t smallest = test::smallest_pool(roles);
    try {
      const PoolLayout layout(roles, smallest - 1);
      FAIL() << letters;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("cluster.buffer_pool_size"));
      EXPECT_THAT(e.what(), testing::HasSubstr(" " + std::to_string(smallest) + " bytes")) << letters;
    }
    EXPECT_THROW(PoolLayout(roles, 0), ConfigError);
  }
}

TEST(PoolLayout, AFunctionOfItsArgumentsAlone) {
  const RoleMap roles = test::role_map("phwhw");
  const PoolLayout a(roles, 8 << 20), b(roles, 8 << 20);
  const Ring x = a.request_ring(WorkerId{1}, ServerId{1}), y = b.request_ring(WorkerId{1}, ServerId{1});
  EXPECT_EQ(x.offset, y.offset);
  EXPECT_EQ(x.slots, y.slots);
  EXPECT_EQ(x.slot_bytes, y.slot_bytes);
  EXPECT_EQ(x.credit_offset, y.credit_offset);
}

TEST(PoolLayout, ALargerPoolMakesLargerSlots) {
  const RoleMap roles = test::role_map("pwww");
  EXPECT_GT(PoolLayout(roles, 8 << 20).smallest_slot_bytes(),
            PoolLayout(roles, 1 << 20).smallest_slot_bytes());
}

}  // namespace
}  // namespace hf
