// The messages between workers and servers, as bytes.
//
//   message  := header body trailer                         (at most one mailbox slot)
//   header   := seq:u64 magic:u32 kind:u16 sender:u16 step:u64 table:u32 rows:u32 body_bytes:u32 tag:u32
//               weight:f32 learning_rate:f32 row_format:u8 flags:u8 zero:14
//               (64 bytes, little endian; the zeros are room for what later messages carry)
//   body     := block | bytes                               (by kind, padded to 8 bytes; block: codec/row_block.hpp)
//   trailer  := crc32c:u32 seq:u32                          (checksum of header from `magic` on, and body)
//
//   kind           from     body                  meaning
//   create_table   worker   bytes (JSON)          table := spec; answered by ack
//   assign         worker   block of ids, rows    weights := rows, optimizer state fresh; answered by ack
//   pull           worker   block of ids          answered by `rows` (when the staleness gate opens)
//   push           worker   block of ids, rows    gradients of step `step`, to be divided by Σ weight
//   clock          worker   –                     the worker has completed `step` steps, the last with `weight`
//                                                 (step all ones: no more data for now)
//   flush          worker   –                     answered by ack: everything sent before is processed
//   command        worker   bytes (JSON)          save, load, statistics; answered by ack with a JSON body
//   bye            worker   –                     the worker sends nothing any more; answered by ack
//   rows           server   block of rows         the answer to the pull with the same tag
//   ack            server   bytes                 the answer to the request with the same tag
//   error          server   bytes (text)          the request with the same tag failed: "EXIT_CODE reason"
//
// seq counts the messages of one (sender, receiver) direction from 1. It is the head word: the receiver polls it and
// accepts the message only when header, trailer and checksum agree, so that a put that is cut short is never read, nor a
// head word that is torn. sender is the WorkerId or ServerId; a ring refuses messages of anybody but its own sender.
// Threading: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/types.hpp"

namespace hf {

enum class MessageKind : std::uint16_t {
  create_table = 1,
  assign,
  pull,
  push,
  clock,
  flush,
  command,
  bye,
  rows,
  ack,
  error,
};
const char* to_string(MessageKind kind) noexcept;

enum class RowFormat : std::uint8_t { f32 = 0 };

/// Flags of a pull.
inline constexpr std::uint8_t kPullAdmit = 1;    ///< create dynamic rows that do not exist
inline constexpr std::uint8_t kPullUngated = 2;  ///< evaluation: not held back by the staleness gate

struct MessageHeader {
  std::uint64_t seq = 0;
  std::uint32_t magic = 0;
  MessageKind kind{};
  std::uint16_t sender = 0;
  std::uint64_t step = 0;
  std::uint32_t table = 0;
  std::uint32_t rows = 0;
  std::uint32_t body_bytes = 0;
  std::uint32_t tag = 0;
  float weight = 0.0F;
  float learning_rate = 0.0F;
  RowFormat row_format = RowFormat::f32;
  std::uint8_t flags = 0;
  std::uint8_t zero[14] = {};
};
static_assert(sizeof(MessageHeader) == 64);

inline constexpr std::uint32_t kMessageMagic = 0x324D4648;  // "HFM2"
inline constexpr std::size_t kTrailerBytes = 8;

constexpr std::size_t padded_body(std::size_t body_bytes) noexcept {
  return (body_bytes + 7) & ~std::size_t{7};
}
constexpr std::size_t message_bytes(std::size_t body_bytes) noexcept {
  return sizeof(MessageHeader) + padded_body(body_bytes) + kTrailerBytes;
}
/// Largest body of a message in a slot of `slot_bytes`.
constexpr std::size_t max_body(std::size_t slot_bytes) noexcept {
  return slot_bytes < message_bytes(0) + 8 ? 0 : (slot_bytes - message_bytes(0)) & ~std::size_t{7};
}

/// Completes the message in `slot` whose body is already in place behind the header: zeroes the padding, writes the
/// header but for `seq`, and the trailer. Returns the message's size. The caller publishes seq (last, or by a put of
/// the whole). Requires: message_bytes(header.body_bytes) <= slot.size(), slot 8-byte aligned.
std::size_t seal_message(const MessageHeader& header, std::span<std::byte> slot) noexcept;

/// True when `slot` holds the complete message `seq`: magic, size, trailer and checksum agree.
bool message_complete(std::span<const std::byte> slot, std::uint64_t seq) noexcept;

}  // namespace hf
