// A mailbox: the ring of slots that carries messages of one (sender, receiver) pair in one direction.
//
// Sender: message n goes to slot (n-1) mod slots, when n - consumed ≤ slots. It is written behind the head word,
// sealed (checksum), and published: shared memory, by a release store of the head word; otherwise by one put of the
// whole message from a staging buffer and a flush.
// Receiver: polls the head word of the slot that must come next, validates, reads in place, releases; the count of
// consumed messages goes to the sender's credit line, in shared memory each time, otherwise every quarter of the ring and
// as a credit that is checked (codec/credit.hpp), because a put is not atomic.
// Cost: one put per message, one 16-byte put per slots/4 messages back.
// Threading: one sending and one receiving thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "codec/credit.hpp"
#include "codec/message.hpp"
#include "comm/pool_layout.hpp"
#include "comm/window.hpp"

namespace hf {

class RingSender {
 public:
  RingSender(Window& window, const Ring& ring, std::size_t bell_offset);

  bool can_send() noexcept { return next_ - consumed() <= ring_.slots; }
  /// Room for the body of the next message. Requires: can_send().
  std::span<std::byte> body() noexcept;
  std::size_t max_body_bytes() const noexcept { return max_body(ring_.slot_bytes); }
  std::uint32_t slots() const noexcept { return ring_.slots; }
  /// Stamps seq and sender, seals and publishes the message whose body was written to `body()`. Returns its size on the
  /// wire.
  std::size_t commit(MessageHeader header);

 private:
  std::uint64_t consumed() noexcept;
  std::byte* slot(std::uint64_t seq) noexcept;
  Window& window_;
  Ring ring_;
  std::size_t bell_offset_;
  std::byte* peer_pool_;  // plain memory of the receiver, or nullptr
  std::vector<std::uint64_t> staging_;
  std::uint64_t next_ = 1;
  std::uint64_t consumed_ = 0;  // the last credit that was whole
};

struct MessageView {
  MessageHeader header;
  std::span<const std::byte> body;  ///< valid until release()
};

class RingReceiver {
 public:
  RingReceiver(Window& window, const Ring& ring, std::size_t bell_offset);

  /// The next message, if it is complete. Throws: MpiError for a message that was published but is damaged, or that
  /// another sender wrote here.
  std::optional<MessageView> poll();
  /// Gives the slot of the last polled message back.
  void release();

 private:
  Window& window_;
  Ring ring_;
  std::size_t bell_offset_;
  std::byte* peer_pool_;
  std::uint64_t next_ = 1;
  std::uint64_t credit_every_;
  Credit credit_;  // source of the put, alive until flushed
};

}  // namespace hf
