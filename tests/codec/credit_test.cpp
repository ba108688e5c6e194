#include "codec/credit.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace hf {
namespace {

constexpr std::uint64_t kNone = ~0ULL;

std::uint64_t read(const Credit& c, std::uint64_t known, std::uint64_t sent) {
  return read_credit(c, known, sent).value_or(kNone);
}

TEST(Credit, AWholeCreditIsTheNumber) {
  for (const std::uint64_t n : {1ULL, 2ULL, 255ULL, 256ULL, 1ULL << 33, ~0ULL - 1})
    EXPECT_EQ(read(make_credit(n), 0, ~0ULL - 1), n);
}

TEST(Credit, FreshMemoryIsNoCredit) { EXPECT_EQ(read(Credit{}, 0, 100), kNone); }

TEST(Credit, OnlyProgressUpToWhatWasSentCounts) {
  EXPECT_EQ(read(make_credit(5), 5, 9), kNone);  // known already
  EXPECT_EQ(read(make_credit(4), 5, 9), kNone);
  EXPECT_EQ(read(make_credit(9), 5, 9), 9U);
  EXPECT_EQ(read(make_credit(10), 5, 9), kNone);  // never sent
}

/// The bytes of two credits, `mask` saying which come from the newer one.
Credit torn(const Credit& older, const Credit& newer, unsigned mask) {
  unsigned char a[sizeof(Credit)], b[sizeof(Credit)];
  std::memcpy(a, &older, sizeof a);
  std::memcpy(b, &newer, sizeof b);
  for (std::size_t i = 0; i < sizeof a; ++i)
    if ((mask >> i & 1) != 0) a[i] = b[i];
  Credit c;
  std::memcpy(&c, a, sizeof c);
  return c;
}

TEST(Credit, NoMixtureOfTwoCreditsIsTaken) {
  // 255 -> 256 and 65535 -> 65536 are the ones that a number torn at a byte turns into a far larger one (511, 131071): also
  // when both words are torn at the same byte, which {n, ~n} would not show.
  for (const auto& [older, newer] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {255, 256}, {65535, 65536}, {0, 8}, {248, 256}, {0xFFFFFFFF, 0x100000007}}) {
    const Credit a = older == 0 ? Credit{} : make_credit(older), b = make_credit(newer);
    for (unsigned mask = 0; mask < 1U << 16; ++mask) {
      const std::uint64_t seen = read(torn(a, b, mask), 0, kNone - 1);
      ASSERT_TRUE(seen == kNone || seen == older || seen == newer)
          << older << " -> " << newer << " mask " << mask << " gives " << seen;
    }
    EXPECT_EQ(read(torn(a, b, 0xFFFF), 0, kNone - 1), newer);
  }
}

}  // namespace
}  // namespace hf
