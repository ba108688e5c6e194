#include "codec/message.hpp"

#include <cstring>

#include "codec/crc32c.hpp"

namespace hf {
namespace {

struct Trailer {
  std::uint32_t crc;
  std::uint32_t seq;
};
static_assert(sizeof(Trailer) == kTrailerBytes);

constexpr std::size_t kSeqBytes = sizeof(std::uint64_t);

std::uint32_t checksum(const std::byte* message, std::size_t padded) noexcept {
  return crc32c(message + kSeqBytes, sizeof(MessageHeader) - kSeqBytes + padded);
}

}  // namespace

const char* to_string(MessageKind kind) noexcept {
  switch (kind) {
    case MessageKind::create_table:
      return "create_table";
    case MessageKind::assign:
      return "assign";
    case MessageKind::pull:
      return "pull";
    case MessageKind::push:
      return "push";
    case MessageKind::clock:
      return "clock";
    case MessageKind::flush:
      return "flush";
    case MessageKind::command:
      return "command";
    case MessageKind::bye:
      return "bye";
    case MessageKind::rows:
      return "rows";
    case MessageKind::ack:
      return "ack";
    case MessageKind::error:
      return "error";
  }
  return "unknown";
}

std::size_t seal_message(const MessageHeader& header, std::span<std::byte> slot) noexcept {
  const std::size_t padded = padded_body(header.body_bytes);
  MessageHeader h = header;
  h.magic = kMessageMagic;
  // Everything of the header behind the head word.
  std::memcpy(slot.data() + kSeqBytes, reinterpret_cast<const std::byte*>(&h) + kSeqBytes,
              sizeof(MessageHeader) - kSeqBytes);
  std::memset(slot.data() + sizeof(MessageHeader) + h.body_bytes, 0, padded - h.body_bytes);
  const Trailer trailer{checksum(slot.data(), padded), static_cast<std::uint32_t>(h.seq)};
  std::memcpy(slot.data() + sizeof(MessageHeader) + padded, &trailer, sizeof trailer);
  return message_bytes(h.body_bytes);
}

bool message_complete(std::span<const std::byte> slot, std::uint64_t seq) noexcept {
  MessageHeader h;
  std::memcpy(&h, slot.data(), sizeof h);
  if (h.seq != seq || h.magic != kMessageMagic || message_bytes(h.body_bytes) > slot.size()) return false;
  const std::size_t padded = padded_body(h.body_bytes);
  Trailer trailer;
  std::memcpy(&trailer, slot.data() + sizeof h + padded, sizeof trailer);
  // The trailer's seq differs while the end of a put is still on its way: cheaper to see than the checksum.
  return trailer.seq == static_cast<std::uint32_t>(seq) && trailer.crc == checksum(slot.data(), padded);
}

}  // namespace hf
