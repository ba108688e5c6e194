// A stage behind a batch stream: a thread that reads batches, makes something of each, and hands both over through a short
// queue.
//
// What comes out of next() is all that the consumer may look at: the stream itself belongs to the thread. So the stream's
// statistics travel with each batch, by value, and stats() describes what was handed out so far, not what was read ahead.
// What stream or `make` throw comes out of next() after the batches before it, and again at every later call.
// Threading: next(), recycle() and stats() from one thread; `make` runs in the stage's thread. The destructor may run at any
// time: it waits for the batch that is being made.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "io/dataset.hpp"

namespace hf {

template <class Made>
class BatchStage {
 public:
  struct Item {
    Batch data;
    Made made{};
    StreamStats stats;  ///< of the stream when this batch had been read
  };
  using Make = std::function<void(const Batch&, Made&)>;

  /// At most `depth` items wait. `make` gets the `made` of a recycled item, or a fresh one.
  BatchStage(std::unique_ptr<BatchStream> stream, std::size_t depth, Make make)
      : stream_(std::move(stream)),
        make_(std::move(make)),
        depth_(depth),
        hint_(stream_->total_rows_hint()),
        thread_([this] { run(); }) {}
  BatchStage(const BatchStage&) = delete;
  BatchStage& operator=(const BatchStage&) = delete;
  ~BatchStage() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_one();
    thread_.join();
  }

  /// The next batch, or null at the end. Throws: what stream and `make` throw.
  std::unique_ptr<Item> next() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return ended_ || !ready_.empty(); });
    if (ready_.empty()) {
      stats_ = last_stats_;
      if (error_) std::rethrow_exception(error_);
      return nullptr;
    }
    std::unique_ptr<Item> item = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    room_.notify_one();
    stats_ = item->stats;
    return item;
  }
  /// Gives an item's memory back.
  void recycle(std::unique_ptr<Item> item) {
    const std::lock_guard lock(mutex_);
    spare_.push_back(std::move(item));
  }
  const StreamStats& stats() const noexcept { return stats_; }
  /// As the stream said at the start.
  std::uint64_t total_rows_hint() const noexcept { return hint_; }

 private:
  void run() {
    std::exception_ptr error;
    try {
      while (std::unique_ptr<Item> item = room()) {
        if (!stream_->next(item->data)) break;
        make_(item->data, item->made);
        item->stats = stream_->stats();
        {
          const std::lock_guard lock(mutex_);
          ready_.push_back(std::move(item));
        }
        filled_.notify_one();
      }
    } catch (...) {
      error = std::current_exception();
    }
    StreamStats last = stream_->stats();
    {
      const std::lock_guard lock(mutex_);
      error_ = error;
      last_stats_ = std::move(last);
      ended_ = true;
    }
    filled_.notify_one();
  }

  /// An item to fill, when there is room for it; null when nobody wants more.
  std::unique_ptr<Item> room() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return stop_ || ready_.size() < depth_; });
    if (stop_) return nullptr;
    if (spare_.empty()) return std::make_unique<Item>();
    std::unique_ptr<Item> item = std::move(spare_.front());
    spare_.pop_front();
    return item;
  }

  const std::unique_ptr<BatchStream> stream_;  ///< the thread's
  const Make make_;
  const std::size_t depth_;
  const std::uint64_t hint_;
  StreamStats stats_;  ///< the consumer's

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable filled_, room_;
  std::deque<std::unique_ptr<Item>> ready_, spare_;
  StreamStats last_stats_;
  std::exception_ptr error_;
  bool stop_ = false, ended_ = false;

  std::thread thread_;  ///< last: starts when everything else is there
};

}  // namespace hf
