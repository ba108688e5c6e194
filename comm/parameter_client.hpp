// A worker's end of the mailboxes: push and pull of rows of any table on all servers.
//
// pull   ids are dealt to their servers, cut into requests whose answers fit a reply slot, and sent as far as the
//        reply rings have room; `complete_pull` sends the rest as answers come in. initiate_pull as early as possible,
//        complete_pull as late as possible. The order in which requests leave: comm/pull_queue.hpp.
// push   ids and gradients are written straight into the servers' slots (shared memory) or a staging slot.
// Cost: pull of n ids from s servers: s·⌈n/s / k⌉ messages of n/s·8 bytes out and n/s·dim·4 bytes back; push: the same
//       number of messages of n/s·(8 + dim·4) bytes. k = rows per slot.
// Invariant: whatever pulls are open, a request that does not wait for this worker's own clock finds a free answer
// slot sooner or later: pulls of steps after the worker's clock take three quarters of the slots at most.
// Threading: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/idle.hpp"
#include "comm/mailbox.hpp"
#include "comm/pool_layout.hpp"
#include "comm/pull_queue.hpp"
#include "comm/request_table.hpp"
#include "comm/window.hpp"
#include "core/table_spec.hpp"
#include "routing/placement.hpp"
#include "routing/routing_table.hpp"
#include "routing/row_hash.hpp"

namespace hf {

struct ClientCounters {
  std::uint64_t bytes_pushed = 0;  ///< on the wire, headers included
  std::uint64_t bytes_pulled = 0;  ///< requests and answers
  std::uint64_t rows_pushed = 0;
  std::uint64_t rows_pulled = 0;
  double wait_seconds = 0;  ///< in complete_pull, flush and for free slots
};

class ParameterClient {
 public:
  /// `liveness` (may be nullptr) says which servers are alive: waits last as long as they are.
  ParameterClient(Window& window, const PoolLayout& layout, const RoleMap& roles, WorkerId me,
                  std::uint32_t num_shards, double timeout_seconds, const Liveness* liveness = nullptr);
  ~ParameterClient();

  std::uint32_t num_servers() const noexcept;

  /// Every worker creates the same tables in the same order. Throws: ConfigError for a row wider than a slot
  /// or when workers disagree; MpiError.
  TableId create_table(const TableSpec& spec);
  const TableSpec& table(TableId id) const;
  std::vector<TableSpec> tables() const;  ///< in order of creation

  /// Widest row, in floats, that fits a slot beside one id.
  std::uint32_t widest_row_floats() const noexcept;

  /// Overwrites weights (optimizer state starts afresh). Waits for the servers.
  void assign(TableId table, std::span<const RowId> ids, const float* rows);

  /// out: [ids, dim], in storage that `keep_alive` owns, or that the caller keeps until the handle is completed or
  /// dropped. `step`: clock of the batch (gate). flags: kPullAdmit, kPullUngated. Requires: ids unique, in range of a
  /// static table.
  PullHandle initiate_pull(TableId table, std::span<const RowId> ids, float* out, Step step,
                           std::uint8_t flags, std::shared_ptr<const void> keep_alive = nullptr);
  /// Waits for the rows; the handle is empty afterwards. Throws: MpiError after the timeout, and the handle can be completed
  /// later or dropped; the server's error (DataError for an id out of range) with its message.
  void complete_pull(PullHandle& handle);
  void complete_pull(PullHandle&& handle) { complete_pull(handle); }

  struct PushArgs {
    Step step = 0;
    float weight = 1.0F;         ///< the servers divide the (summed) gradients by the (summed) weights
    float learning_rate = 0.0F;  ///< of this step
  };
  /// Gradients of unique rows. Returns when everything is written into mailboxes. Shape of grads: [ids, dim].
  void push(TableId table, std::span<const RowId> ids, const float* grads, const PushArgs& args);

  /// The worker has completed `completed` steps, the last one with `weight` (0: nothing was pushed).
  /// kClockInfinite: it has no more data for now.
  void clock(Step completed, float weight);
  /// Waits until every server has processed everything sent so far.
  void flush();
  /// Sends a command to every server and waits; the servers' answers by ServerId. Throws: the first server's
  /// error, after every server has answered.
  std::vector<std::string> command(const std::string& json);
  /// The last message. Nothing may follow.
  void bye();

  /// Handles answers that have arrived and sends what was held back; true when anything happened.
  bool pump();
  const ClientCounters& counters() const noexcept { return counters_; }

 private:
  struct TableState;
  struct Peer {
    RingSender requests;
    RingReceiver replies;
    std::uint32_t reply_slots;
    std::size_t reply_body;

    /// Answers that may be expected at once. Credits may lag by a quarter of the ring, and the server must
    /// never wait.
    std::uint32_t limit() const noexcept { return reply_slots - reply_slots / 4 - 1; }
  };

  void wait_for_slot(std::uint32_t server);
  void wait_for_answer_room(std::uint32_t server, const char* what);
  void wait_for_answers(Outcome& outcome, const std::string& what);
  bool receive(std::uint32_t server);
  bool send_held_back();
  bool send_requests(Pull& pull, std::uint32_t server);
  void deal(const TableState& table, std::span<const RowId> ids);
  template <class Poll>
  void wait(Poll&& poll, const std::string& what);
  void request_all(MessageKind kind, const std::string& body, std::vector<std::string>* answers,
                   const char* what);
  void send_rows(MessageKind kind, TableId table, std::span<const RowId> ids, const float* rows,
                 const PushArgs& args, const std::shared_ptr<Outcome>& outcome);

  RoutingTable routing_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<TableState>> tables_;
  PullQueue pulls_;
  RequestTable requests_;
  // Scratch of deal(): positions grouped by server.
  std::vector<std::uint32_t> server_of_, order_, begin_of_;
  Idle idle_;
  Step completed_ = 0;  // our clock
  ClientCounters counters_;
};

}  // namespace hf
