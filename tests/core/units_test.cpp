#include "core/units.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace hf {
namespace {

TEST(Units, ParseBytes) {
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("8GB"), 8ULL << 30);
  EXPECT_EQ(parse_bytes("8 gib"), 8ULL << 30);
  EXPECT_EQ(parse_bytes("64 MiB"), 64ULL << 20);
  EXPECT_EQ(parse_bytes("1.5g"), 3ULL << 29);
  EXPECT_EQ(parse_bytes("16k"), 16384U);
  EXPECT_EQ(parse_bytes("2TB "), 2ULL << 40);
  EXPECT_EQ(parse_bytes("3b"), 3U);
}

TEST(Units, ParseBytesRefuses) {
  for (const char* text :
       {"", "GB", "-1", "8XB", "8GBB", "nan", "inf", "1e30", "9999999TB", "8 G B C", "0x10"}) {
    try {
      parse_bytes(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr('"' + std::string(text) + '"'));
    }
  }
}

TEST(Units, Format) {
  EXPECT_EQ(format_bytes(17), "17 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(3.0 * (1ULL << 40)), "3.0 TiB");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_seconds(2.5), "2.5s");
  EXPECT_EQ(format_seconds(83.4), "1m23s");
  EXPECT_EQ(format_seconds(3600 * 5 + 61), "5h01m");
}

}  // namespace
}  // namespace hf
