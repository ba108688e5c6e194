#include "codec/crc32c.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>
#include <vector>

namespace hf {
namespace {

// RFC 3720, appendix B.4.
TEST(Crc32c, KnownAnswers) {
  EXPECT_EQ(crc32c("", 0), 0U);
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283U);
  std::vector<unsigned char> bytes(32, 0x00);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x8A9136AAU);
  bytes.assign(32, 0xFF);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x62A8AB43U);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<unsigned char>(i);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x46DD794EU);
  for (std::size_t i = 0; i < 32; ++i) bytes[i] = static_cast<unsigned char>(31 - i);
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), 0x113FDB5CU);
}

/// Bit by bit, as the polynomial is written.
std::uint32_t slow_crc32c(const std::vector<unsigned char>& bytes) {
  std::uint32_t state = ~0U;
  for (const unsigned char b : bytes) {
    state ^= b;
    for (int i = 0; i < 8; ++i) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78U : 0U);
  }
  return ~state;
}

TEST(Crc32c, EveryLengthAndAlignmentEqualsTheDefinition) {
  std::vector<unsigned char> bytes(700);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 131 + (i >> 3));
  for (std::size_t length = 0; length < 600; length += length < 80 ? 1 : 37)
    for (std::size_t begin = 0; begin < 9; ++begin) {
      const std::vector<unsigned char> part(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                                            bytes.begin() + static_cast<std::ptrdiff_t>(begin + length));
      ASSERT_EQ(crc32c(bytes.data() + begin, length), slow_crc32c(part)) << length << " bytes from " << begin;
    }
}

TEST(Crc32c, CallsChain) {
  constexpr std::string_view text = "the checksum of a followed by b";
  const std::uint32_t whole = crc32c(text.data(), text.size());
  for (std::size_t cut = 0; cut <= text.size(); ++cut)
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), whole)
        << "cut at " << cut;
}

}  // namespace
}  // namespace hf
