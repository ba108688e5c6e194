// The pulls of a worker, in the order in which they were begun, and the order in which their requests may leave.
//
// Invariants:
//   1. rows are written only while the pull's handle lives: an answer that comes later is dropped;
//   2. the storage that a pull writes to is kept alive (`keep_alive`) until its last answer is in or nobody wants it;
//   3. requests go to each server in the order of the pulls; only pulls that do not wait for the worker's own clock pass
//      others that do.
// Threading: one thread. A PullHandle may be dropped by any thread, at any time, also after its client: where the storage
// is kept alive by the pull, an answer that is being written meanwhile does no harm.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "codec/row_block.hpp"
#include "comm/request_table.hpp"
#include "core/types.hpp"

namespace hf {

/// A pull on its way. Buffers are reused from pull to pull.
struct Pull {
  TableId table;
  std::uint32_t dim = 0;
  Step step = 0;
  std::uint8_t flags = 0;
  float* out = nullptr;
  std::shared_ptr<const void> keep_alive;
  std::vector<RowId> ids;                ///< grouped by server
  std::vector<std::uint32_t> positions;  ///< where each goes in `out`; empty: in order (one server)
  std::vector<std::uint32_t> next, end;  ///< by server: ids not yet asked for
  std::uint32_t remaining = 0;           ///< rows not yet here
  std::optional<ServerFailure> error;
  std::atomic<bool> dropped{false};  ///< the handle is gone: nobody wants the rows

  /// The gate may stay shut for this pull until our own clock moves on.
  bool waits_for_us(Step completed) const noexcept { return (flags & kPullUngated) == 0 && step > completed; }
};

/// The caller's end of a pull: to be given to complete_pull. Dropped before that, it abandons the pull.
class [[nodiscard]] PullHandle {
 public:
  PullHandle() = default;
  PullHandle(PullHandle&& other) noexcept = default;
  PullHandle& operator=(PullHandle&& other) noexcept {
    std::swap(pull_, other.pull_);
    other.drop();
    return *this;
  }
  ~PullHandle() { drop(); }
  /// True while there is something to complete.
  explicit operator bool() const noexcept { return pull_ != nullptr; }

 private:
  friend class PullQueue;
  explicit PullHandle(std::shared_ptr<Pull> pull) noexcept : pull_(std::move(pull)) {}
  void drop() noexcept {
    if (pull_) pull_->dropped.store(true, std::memory_order_release);
    pull_.reset();
  }
  std::shared_ptr<Pull> pull_;
};

class PullQueue {
 public:
  /// A pull at the end of the queue, to be filled by the caller (everything but `remaining`'s further course).
  std::pair<PullHandle, Pull&> add(std::size_t servers);

  /// Calls `send(pull)` for pulls that have something left to ask this server, in the order of invariant 3; `send` says
  /// whether it sent anything, and stops where the flow control does. True when anything was sent.
  template <class Send>
  bool send_in_order(std::uint32_t server, Step completed, Send&& send) {
    bool any = false, future_held_back = false;
    for (const auto& pull : open_) {
      if (pull->next[server] == pull->end[server] || pull->dropped.load(std::memory_order_relaxed)) continue;
      const bool future = pull->waits_for_us(completed);
      if (future && future_held_back) continue;
      if (send(*pull)) any = true;
      if (pull->next[server] == pull->end[server]) continue;
      if (!future) break;  // held back: nothing passes it
      future_held_back = true;
    }
    return any;
  }

  /// The answer to ids [begin, end) of the pull's order.
  static void deliver(Pull& pull, std::uint32_t begin, std::uint32_t end, const RowBlockView& rows);
  static void fail(Pull& pull, std::uint32_t begin, std::uint32_t end, ServerFailure error);

  /// The pull of a handle of this queue. Throws: CheckFailed for an empty handle, or one of another client.
  const Pull& at(const PullHandle& handle) const;
  /// Ends a pull whose rows are all here; the handle is empty then. Throws: the server's error.
  void complete(PullHandle& handle);
  /// Takes back what nobody waits for: requests not yet sent of dropped pulls, and pulls whose last answer is in.
  void reap();

 private:
  std::vector<std::shared_ptr<Pull>> open_, free_;
};

}  // namespace hf
