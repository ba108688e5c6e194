#include "comm/server_port.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace hf {
namespace {

Bell* local_bell(Window& window, std::size_t offset) {
  // Only peers that share our memory can ring.
  if (window.transport() != Transport::shm) return nullptr;
  return reinterpret_cast<Bell*>(window.local().data() + offset);
}

}  // namespace

ServerPort::ServerPort(Window& window, const PoolLayout& layout, const RoleMap& roles, ServerId me,
                       double timeout_seconds)
    : me_(me), idle_(window, local_bell(window, PoolLayout::server_bell_offset()), timeout_seconds) {
  for (std::uint32_t w = 0; w < roles.worker_ranks.size(); ++w) {
    requests_.emplace_back(window, layout.request_ring(WorkerId{w}, me), PoolLayout::worker_bell_offset());
    replies_.emplace_back(window, layout.reply_ring(me, WorkerId{w}), PoolLayout::worker_bell_offset());
  }
}

std::span<std::byte> ServerPort::reply_body(WorkerId worker) {
  HF_CHECK(replies_[worker.value].can_send(), "a worker asked for more replies than its ring holds");
  return replies_[worker.value].body();
}

void ServerPort::send_rows(WorkerId worker, const MessageHeader& request, std::size_t body_bytes) {
  MessageHeader h = request;
  h.kind = MessageKind::rows;
  h.sender = static_cast<std::uint16_t>(me_.value);
  h.body_bytes = static_cast<std::uint32_t>(body_bytes);
  bytes_sent_ += replies_[worker.value].commit(h);
}

void ServerPort::send_text(WorkerId worker, MessageKind kind, std::uint32_t tag, std::string_view text) {
  const std::span<std::byte> body = reply_body(worker);
  const std::size_t bytes = std::min(text.size(), body.size());
  std::memcpy(body.data(), text.data(), bytes);
  MessageHeader h;
  h.kind = kind;
  h.sender = static_cast<std::uint16_t>(me_.value);
  h.tag = tag;
  h.body_bytes = static_cast<std::uint32_t>(bytes);
  bytes_sent_ += replies_[worker.value].commit(h);
}

void ServerPort::send_ack(WorkerId worker, std::uint32_t tag, std::string_view text) {
  HF_CHECK(text.size() <= replies_[worker.value].max_body_bytes(), "an ack larger than a reply slot");
  send_text(worker, MessageKind::ack, tag, text);
}
void ServerPort::send_error(WorkerId worker, std::uint32_t tag, const Error& error) {
  send_text(worker, MessageKind::error, tag,
            std::to_string(static_cast<int>(error.exit_code())) + " " + error.what());
}

}  // namespace hf
