#include "comm/mailbox.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "comm/bell.hpp"
#include "core/error.hpp"

namespace hf {
namespace {

std::uint64_t load_acquire(const std::byte* at) noexcept {
  return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(at)))
      .load(std::memory_order_acquire);
}
void store_release(std::byte* at, std::uint64_t value) noexcept {
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at))
      .store(value, std::memory_order_release);
}

}  // namespace

RingSender::RingSender(Window& window, const Ring& ring, std::size_t bell_offset)
    : window_(window), ring_(ring), bell_offset_(bell_offset), peer_pool_(window.direct(ring.owner)) {
  if (!peer_pool_) staging_.resize(ring.slot_bytes / sizeof(std::uint64_t));
}

std::uint64_t RingSender::consumed() noexcept {
  const std::byte* line = window_.local().data() + ring_.credit_offset;
  if (peer_pool_) return load_acquire(line);
  const Credit seen{.consumed = load_acquire(line), .check = load_acquire(line + sizeof(std::uint64_t))};
  consumed_ = read_credit(seen, consumed_, next_ - 1).value_or(consumed_);
  return consumed_;
}

std::byte* RingSender::slot(std::uint64_t seq) noexcept {
  return peer_pool_ ? peer_pool_ + ring_.offset + (seq - 1) % ring_.slots * ring_.slot_bytes
                    : reinterpret_cast<std::byte*>(staging_.data());
}

std::span<std::byte> RingSender::body() noexcept {
  return {slot(next_) + sizeof(MessageHeader), max_body(ring_.slot_bytes)};
}

std::size_t RingSender::commit(MessageHeader header) {
  header.seq = next_;
  header.sender = static_cast<std::uint16_t>(ring_.sender_id);
  std::byte* at = slot(next_);
  const std::size_t bytes = seal_message(header, {at, ring_.slot_bytes});
  if (peer_pool_) {
    store_release(at, header.seq);
  } else {
    std::memcpy(at, &header.seq, sizeof header.seq);
    window_.put(ring_.owner, ring_.offset + (next_ - 1) % ring_.slots * ring_.slot_bytes, at, bytes);
    window_.flush(ring_.owner);
  }
  ++next_;
  ring_bell(peer_pool_, bell_offset_);
  return bytes;
}

RingReceiver::RingReceiver(Window& window, const Ring& ring, std::size_t bell_offset)
    : window_(window),
      ring_(ring),
      bell_offset_(bell_offset),
      peer_pool_(window.direct(ring.sender)),
      credit_every_(peer_pool_ ? 1 : std::max(1u, ring.slots / 4)) {}

std::optional<MessageView> RingReceiver::poll() {
  const std::byte* at = window_.local().data() + ring_.offset + (next_ - 1) % ring_.slots * ring_.slot_bytes;
  if (load_acquire(at) != next_) return std::nullopt;
  if (!message_complete({at, ring_.slot_bytes}, next_)) {
    // In shared memory the head word is written last: what it announces must be whole.
    if (peer_pool_) throw MpiError(fmt::format("damaged message {} from rank {}", next_, ring_.sender.value));
    return std::nullopt;
  }
  MessageView view;
  std::memcpy(&view.header, at, sizeof view.header);
  if (view.header.sender != ring_.sender_id)
    throw MpiError(fmt::format(
        "message {} in the ring of rank {}: expected sender {}, found {} (ranks that disagree about "
        "the layout of the pools?)",
        next_, ring_.sender.value, ring_.sender_id, view.header.sender));
  view.body = {at + sizeof view.header, view.header.body_bytes};
  return view;
}

void RingReceiver::release() {
  const std::uint64_t consumed = next_++;
  if (peer_pool_) {
    store_release(peer_pool_ + ring_.credit_offset, consumed);
    // A sender that waits for a slot has a full ring in front of us: we pass a multiple of half of it.
    if (consumed % std::max(1u, ring_.slots / 2) == 0) ring_bell(peer_pool_, bell_offset_);
  } else if (consumed % credit_every_ == 0) {
    credit_ = make_credit(consumed);
    window_.put(ring_.sender, ring_.credit_offset, &credit_, sizeof credit_);
    window_.flush(ring_.sender);
  }
}

}  // namespace hf
