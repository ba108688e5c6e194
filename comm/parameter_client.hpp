// A worker's end of the mailboxes: push and pull of rows of any table on all servers.
//
// pull   ids are dealt to their servers, cut into requests whose answers fit a reply slot, and sent as far as the
//        reply rings have room; `complete_pull` sends the rest as answers come in. initiate_pull as early as possible,
//        complete_pull as late as possible. Pulls go out to each server in the order of initiate_pull.
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
  ParameterClient(Window& window, const PoolLayout& layout, const RoleMap& roles, WorkerId me,
                  std::uint32_t num_shards, double timeout_seconds);
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

  using Ticket = std::uint32_t;
  /// out: [ids, dim], must live until complete_pull. `step`: clock of the batch (gate). flags: kPullAdmit,
  /// kPullUngated. Requires: ids unique, in range of a static table.
  Ticket initiate_pull(TableId table, std::span<const RowId> ids, float* out, Step step, std::uint8_t flags);
  /// Throws: MpiError after the timeout; the server's error (DataError for an id out of range) with its
  /// message.
  void complete_pull(Ticket ticket);
  /// Nobody wants the rows any more: `out` is not written from now on, and nothing is waited for.
  void abandon_pull(Ticket ticket);

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
  struct Pull;
  struct TableState;
  struct Outcome;
  struct Pending {
    bool used = false;
    bool is_pull = false;
    std::uint32_t pull = 0;  // index into pulls_
    std::uint32_t server = 0;
    std::uint32_t begin = 0, end = 0;  // positions in the pull's order
    std::shared_ptr<Outcome> outcome;  // of a request that is no pull
  };
  struct Peer {
    RingSender requests;
    RingReceiver replies;
    std::uint32_t reply_slots;
    std::size_t reply_body;
    std::uint32_t outstanding = 0;  // answers expected

    /// Answers that may be expected at once. Credits may lag by a quarter of the ring, and the server must
    /// never wait.
    std::uint32_t limit() const noexcept { return reply_slots - reply_slots / 4 - 1; }
  };

  void reap_abandoned();
  std::uint32_t new_tag(Pending pending);
  void wait_for_slot(std::uint32_t server);
  void wait_for_answer_room(std::uint32_t server, const char* what);
  void wait_for_answers(Outcome& outcome, const std::string& what);
  bool receive(std::uint32_t server);
  bool send_held_back();
  bool send_requests(std::uint32_t pull, std::uint32_t server);
  bool waits_for_us(const Pull& pull) const noexcept;
  void deal(const TableState& table, std::span<const RowId> ids);
  template <class Poll>
  void wait(Poll&& poll, const std::string& what);
  void request_all(MessageKind kind, const std::string& body, std::vector<std::string>* answers,
                   const char* what);
  void send_rows(MessageKind kind, TableId table, std::span<const RowId> ids, const float* rows,
                 const PushArgs& args, const std::shared_ptr<Outcome>& outcome);

  Window& window_;
  WorkerId me_;
  RoutingTable routing_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<TableState>> tables_;
  std::vector<std::unique_ptr<Pull>> pulls_;
  std::vector<std::uint32_t> free_pulls_, open_pulls_;
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> free_tags_;
  // Scratch of deal(): positions grouped by server.
  std::vector<std::uint32_t> server_of_, order_, begin_of_;
  Idle idle_;
  Step completed_ = 0;  // our clock
  ClientCounters counters_;
};

}  // namespace hf
