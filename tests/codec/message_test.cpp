#include "codec/message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace hf {
namespace {

/// A slot as a ring has it: 8-byte aligned, filled with what an earlier message left.
struct Slot {
  explicit Slot(std::size_t bytes) : words(bytes / 8, 0xA5A5A5A5A5A5A5A5ULL) {}
  std::vector<std::uint64_t> words;
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(words)); }
};

MessageHeader header_of(std::uint64_t seq, std::size_t body_bytes) {
  MessageHeader h;
  h.seq = seq;
  h.kind = MessageKind::push;
  h.sender = 12;
  h.flags = kPullAdmit;
  h.step = 0x1122334455667788ULL;
  h.table = 5;
  h.rows = 7;
  h.body_bytes = static_cast<std::uint32_t>(body_bytes);
  h.tag = 99;
  h.weight = 2.5F;
  h.learning_rate = 0.125F;
  return h;
}

std::size_t write(Slot& slot, const MessageHeader& h) {
  for (std::size_t i = 0; i < h.body_bytes; ++i)
    slot.bytes()[sizeof h + i] = static_cast<std::byte>(i * 7 + 1);
  const std::size_t bytes = seal_message(h, slot.bytes());
  std::memcpy(slot.bytes().data(), &h.seq, sizeof h.seq);
  return bytes;
}

TEST(Message, SealedMessageIsCompleteAndKeepsEveryField) {
  for (std::size_t body = 0; body <= 40; ++body) {
    Slot slot(256);
    const MessageHeader h = header_of(41, body);
    EXPECT_EQ(write(slot, h), message_bytes(body));
    ASSERT_TRUE(message_complete(slot.bytes(), 41)) << body;
    MessageHeader read;
    std::memcpy(&read, slot.bytes().data(), sizeof read);
    MessageHeader expected = h;
    expected.magic = kMessageMagic;
    EXPECT_EQ(std::memcmp(&read, &expected, sizeof read), 0) << body;
    for (std::size_t i = 0; i < body; ++i)
      EXPECT_EQ(slot.bytes()[sizeof h + i], static_cast<std::byte>(i * 7 + 1));
    for (std::size_t i = body; i < padded_body(body); ++i)
      EXPECT_EQ(slot.bytes()[sizeof h + i], std::byte{0}) << "padding";
  }
}

TEST(Message, SealLeavesTheHeadWordAndTheRestOfTheSlotAlone) {
  Slot slot(256);
  const std::size_t bytes = seal_message(header_of(41, 0), slot.bytes());
  EXPECT_EQ(slot.words.front(), 0xA5A5A5A5A5A5A5A5ULL);  // published by the caller, last
  EXPECT_FALSE(message_complete(slot.bytes(), 41));
  for (std::size_t i = bytes / 8; i < slot.words.size(); ++i) EXPECT_EQ(slot.words[i], 0xA5A5A5A5A5A5A5A5ULL);
}

TEST(Message, EveryFlippedBitIsSeen) {
  for (const std::size_t body : {0U, 1U, 13U, 64U}) {
    Slot slot(256);
    const std::size_t bytes = write(slot, header_of(41, body));
    for (std::size_t i = 0; i < bytes; ++i)
      for (int bit = 0; bit < 8; ++bit) {
        slot.bytes()[i] ^= static_cast<std::byte>(1 << bit);
        ASSERT_FALSE(message_complete(slot.bytes(), 41))
            << "byte " << i << " bit " << bit << " of a body of " << body;
        slot.bytes()[i] ^= static_cast<std::byte>(1 << bit);
      }
    ASSERT_TRUE(message_complete(slot.bytes(), 41));
  }
}

TEST(Message, EveryTruncationOverAnOlderMessageIsSeen) {
  // A put that is cut short, in a slot that holds the message of one lap before.
  for (const std::size_t old_body : {8U, 24U, 100U}) {
    Slot older(256), newer(256);
    write(older, header_of(41, old_body));
    MessageHeader h = header_of(49, 24);
    const std::size_t bytes = write(newer, h);
    for (std::size_t arrived = 0; arrived < bytes; ++arrived) {
      Slot slot = older;
      std::memcpy(slot.bytes().data(), newer.bytes().data(), arrived);
      // What the older message has in common with the missing end makes the message whole.
      const auto whole = [&] { return std::memcmp(slot.bytes().data(), newer.bytes().data(), bytes) == 0; };
      ASSERT_EQ(message_complete(slot.bytes(), 49), whole()) << arrived << " of " << bytes << " bytes";
      ASSERT_FALSE(whole() && arrived + 4 <= bytes);
      // The same bytes from the other end: everything but the head.
      slot = older;
      std::memcpy(slot.bytes().data() + bytes - arrived, newer.bytes().data() + bytes - arrived, arrived);
      ASSERT_EQ(message_complete(slot.bytes(), 49), whole())
          << "the last " << arrived << " of " << bytes << " bytes";
    }
  }
}

TEST(Message, WrongNumberIsNotTheMessage) {
  Slot slot(256);
  write(slot, header_of(41, 16));
  EXPECT_FALSE(message_complete(slot.bytes(), 40));
  EXPECT_FALSE(message_complete(slot.bytes(), 42));
  // Equal in the low half only: the trailer agrees, the head word does not.
  EXPECT_FALSE(message_complete(slot.bytes(), 41 + (1ULL << 32)));
  Slot empty(256);
  empty.words.assign(empty.words.size(), 0);
  EXPECT_FALSE(message_complete(empty.bytes(), 1));
  EXPECT_FALSE(message_complete(empty.bytes(), 0));
}

TEST(Message, SizeBeyondTheSlotIsRefusedWithoutReadingBeyondIt) {
  Slot slot(128);
  write(slot, header_of(41, 16));
  for (const std::uint32_t body :
       {57U, 64U, 4096U, 0xFFFFFFF8U, 0xFFFFFFFFU}) {  // the address sanitizer watches
    MessageHeader h = header_of(41, body);
    h.magic = kMessageMagic;
    std::memcpy(slot.bytes().data(), &h, sizeof h);
    EXPECT_FALSE(message_complete(slot.bytes(), 41)) << body;
  }
}

TEST(Message, LargestBodyFillsTheSlotAndNoMore) {
  for (std::size_t slot_bytes = 64; slot_bytes <= 4096; slot_bytes += 8) {
    const std::size_t body = max_body(slot_bytes);
    EXPECT_EQ(body % 8, 0U);
    if (slot_bytes < message_bytes(8)) {
      EXPECT_EQ(body, 0U) << slot_bytes;
      continue;
    }
    EXPECT_LE(message_bytes(body), slot_bytes);
    EXPECT_GT(message_bytes(body + 1), slot_bytes);
  }
  Slot slot(512);
  const std::size_t body = max_body(512);
  EXPECT_EQ(write(slot, header_of(1, body)), 512U);
  EXPECT_TRUE(message_complete(slot.bytes(), 1));
}

TEST(Message, PaddingIsUpToEightBytes) {
  for (std::size_t n = 0; n < 100; ++n) {
    EXPECT_EQ(padded_body(n) % 8, 0U);
    EXPECT_GE(padded_body(n), n);
    EXPECT_LT(padded_body(n), n + 8);
  }
}

TEST(Message, EveryKindHasANameOfItsOwn) {
  std::set<std::string> names;
  for (std::uint16_t k = 1; k <= static_cast<std::uint16_t>(MessageKind::error); ++k) {
    const std::string name = to_string(static_cast<MessageKind>(k));
    EXPECT_NE(name, "unknown") << k;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_STREQ(to_string(static_cast<MessageKind>(999)), "unknown");
}

}  // namespace
}  // namespace hf
