// A server's end of the mailboxes: one request ring from each worker, one reply ring to each.
// Threading: one service thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "codec/row_block.hpp"
#include "comm/idle.hpp"
#include "comm/mailbox.hpp"
#include "comm/pool_layout.hpp"
#include "comm/window.hpp"
#include "core/error.hpp"
#include "routing/placement.hpp"

namespace hf {

class ServerPort {
 public:
  /// `liveness` (may be nullptr) says which workers are alive: a server without requests waits as long as they are.
  ServerPort(Window& window, const PoolLayout& layout, const RoleMap& roles, ServerId me,
             double timeout_seconds, const Liveness* liveness = nullptr);

  std::uint32_t num_workers() const noexcept { return static_cast<std::uint32_t>(requests_.size()); }
  ServerId id() const noexcept { return me_; }

  /// The next request of a worker; valid until release(worker).
  std::optional<MessageView> receive(WorkerId worker);
  void release(WorkerId worker) { requests_[worker.value].release(); }

  /// Room for the rows that a pull asks for, in its format; to be filled and sent. Never waits: a worker asks for no more
  /// than its reply ring holds. Throws: MpiError for a format that is not known.
  RowBlockWriter reply_rows(WorkerId worker, const MessageHeader& request, std::uint32_t dim);
  void send_rows(WorkerId worker, const MessageHeader& request, const RowBlockWriter& rows);
  void send_ack(WorkerId worker, std::uint32_t tag, std::string_view text);
  void send_error(WorkerId worker, std::uint32_t tag, const Error& error);

  Idle& idle() noexcept { return idle_; }

 private:
  std::span<std::byte> reply_body(WorkerId worker);
  void send_text(WorkerId worker, MessageKind kind, std::uint32_t tag, std::string_view text);
  ServerId me_;
  std::vector<Rank> worker_ranks_;
  std::vector<RingReceiver> requests_;
  std::vector<RingSender> replies_;
  Idle idle_;
};

}  // namespace hf
