#include "io/prefetch.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hf {
namespace {

class PrefetchStream final : public BatchStream {
 public:
  PrefetchStream(std::unique_ptr<BatchStream> inner, std::size_t depth)
      : inner_(std::move(inner)),
        depth_(depth),
        hint_(inner_->total_rows_hint()),
        thread_([this] { run(); }) {}

  ~PrefetchStream() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    room_.notify_one();
    thread_.join();
  }

  bool next(Batch& out) override {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [&] { return !queue_.empty(); });
    Item& item = queue_.front();
    stats_ = std::move(item.stats);
    if (item.kind == Kind::batch) {
      std::swap(out, item.batch);
      spare_.push_back(std::move(item.batch));
      queue_.pop_front();
      lock.unlock();
      room_.notify_one();
      return true;
    }
    // The last item stays in the queue for later calls.
    item.stats = stats_;
    out.clear();
    if (item.kind == Kind::error) std::rethrow_exception(item.error);
    return false;
  }

  StreamStats stats() const override { return stats_; }
  std::uint64_t total_rows_hint() const override { return hint_; }

 private:
  enum class Kind { batch, error, end };
  struct Item {
    Kind kind = Kind::batch;
    Batch batch;
    StreamStats stats;
    std::exception_ptr error;
  };

  void run() {
    for (;;) {
      Item item;
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] { return stop_ || queue_.size() < depth_; });
        if (stop_) return;
        if (!spare_.empty()) {
          item.batch = std::move(spare_.back());
          spare_.pop_back();
        }
      }
      try {
        item.kind = inner_->next(item.batch) ? Kind::batch : Kind::end;
      } catch (...) {
        item.kind = Kind::error;
        item.error = std::current_exception();
      }
      item.stats = inner_->stats();
      const bool last = item.kind != Kind::batch;
      {
        const std::lock_guard lock(mutex_);
        queue_.push_back(std::move(item));
      }
      filled_.notify_one();
      if (last) return;
    }
  }

  std::unique_ptr<BatchStream> inner_;
  const std::size_t depth_;
  const std::uint64_t hint_;
  StreamStats stats_;  ///< of the consumer's side

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable filled_, room_;
  std::deque<Item> queue_;
  std::vector<Batch> spare_;
  bool stop_ = false;

  std::thread thread_;  ///< last: starts when everything else is there
};

}  // namespace

std::unique_ptr<BatchStream> prefetch(std::unique_ptr<BatchStream> inner, std::size_t depth) {
  if (depth == 0) return inner;
  return std::make_unique<PrefetchStream>(std::move(inner), depth);
}

}  // namespace hf
