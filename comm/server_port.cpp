#include "comm/server_port.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace hf {

ServerPort::ServerPort(Window& window, const PoolLayout& layout, const RoleMap& roles, ServerId me,
                       double timeout_seconds, const Liveness* liveness)
    : me_(me),
      worker_ranks_(roles.worker_ranks),
      idle_(window, PoolLayout::server_bell_offset(), timeout_seconds,
            PeerWatch(liveness, roles.worker_ranks)) {
  for (std::uint32_t w = 0; w < roles.worker_ranks.size(); ++w) {
    requests_.emplace_back(window, layout.request_ring(WorkerId{w}, me), PoolLayout::worker_bell_offset());
    replies_.emplace_back(window, layout.reply_ring(me, WorkerId{w}), PoolLayout::worker_bell_offset());
  }
}

std::optional<MessageView> ServerPort::receive(WorkerId worker) {
  std::optional<MessageView> message = requests_[worker.value].poll();
  // Who has said goodbye is not waited for.
  if (message && message->header.kind == MessageKind::bye) idle_.watch().forget(worker_ranks_[worker.value]);
  return message;
}

std::span<std::byte> ServerPort::reply_body(WorkerId worker) {
  HF_CHECK(replies_[worker.value].can_send(), "a worker asked for more replies than its ring holds");
  return replies_[worker.value].body();
}

RowBlockWriter ServerPort::reply_rows(WorkerId worker, const MessageHeader& request, std::uint32_t dim) {
  return {reply_body(worker), MessageKind::rows, request.row_format, dim, request.rows};
}

void ServerPort::send_rows(WorkerId worker, const MessageHeader& request, const RowBlockWriter& rows) {
  MessageHeader h = request;
  rows.describe(h);
  replies_[worker.value].commit(h);
}

void ServerPort::send_text(WorkerId worker, MessageKind kind, std::uint32_t tag, std::string_view text) {
  const std::span<std::byte> body = reply_body(worker);
  const std::size_t bytes = std::min(text.size(), body.size());
  std::memcpy(body.data(), text.data(), bytes);
  MessageHeader h;
  h.kind = kind;
  h.tag = tag;
  h.body_bytes = static_cast<std::uint32_t>(bytes);
  replies_[worker.value].commit(h);
}

void ServerPort::send_ack(WorkerId worker, std::uint32_t tag, std::string_view text) {
  HF_CHECK(text.size() <= replies_[worker.value].max_body_bytes(), "an ack larger than a reply slot");
  send_text(worker, MessageKind::ack, tag, text);
}
void ServerPort::send_error(WorkerId worker, std::uint32_t tag, const Error& error) {
  send_text(worker, MessageKind::error, tag,
            fmt::format("{} {}", static_cast<int>(error.exit_code()), error.what()));
}

}  // namespace hf
