// A server's end of the mailboxes: one request ring from each worker, one reply ring to each.
// Threading: one service thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "comm/idle.hpp"
#include "comm/mailbox.hpp"
#include "comm/pool_layout.hpp"
#include "comm/window.hpp"
#include "core/error.hpp"
#include "routing/placement.hpp"

namespace hf {

class ServerPort {
 public:
  ServerPort(Window& window, const PoolLayout& layout, const RoleMap& roles, ServerId me,
             double timeout_seconds);

  std::uint32_t num_workers() const noexcept { return static_cast<std::uint32_t>(requests_.size()); }
  ServerId id() const noexcept { return me_; }

  /// The next request of a worker; valid until release(worker).
  std::optional<MessageView> receive(WorkerId worker) { return requests_[worker.value].poll(); }
  void release(WorkerId worker) { requests_[worker.value].release(); }

  /// Room for the body of a reply. Never waits: a worker asks for no more than its reply ring holds.
  std::span<std::byte> reply_body(WorkerId worker);
  void send_rows(WorkerId worker, const MessageHeader& request, std::size_t body_bytes);
  void send_ack(WorkerId worker, std::uint32_t tag, std::string_view text);
  void send_error(WorkerId worker, std::uint32_t tag, const Error& error);

  Idle& idle() noexcept { return idle_; }
  std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

 private:
  void send_text(WorkerId worker, MessageKind kind, std::uint32_t tag, std::string_view text);
  ServerId me_;
  std::vector<RingReceiver> requests_;
  std::vector<RingSender> replies_;
  Idle idle_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace hf
