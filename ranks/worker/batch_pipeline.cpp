#include "ranks/worker/batch_pipeline.hpp"

#include <utility>

namespace hf {
namespace {
constexpr std::size_t kReady = 2;
}

std::vector<IdBags> id_bags(const Batch& batch) {
  std::vector<IdBags> bags;
  bags.reserve(batch.sparse.size());
  for (const SparseColumn& c : batch.sparse)
    bags.push_back({.ids = c.ids, .offsets = c.offsets, .weights = c.weights});
  return bags;
}

BatchPipeline::BatchPipeline(std::unique_ptr<BatchStream> stream,
                             const DistributedEmbeddingCollection& embeddings)
    : stream_(std::move(stream)), embeddings_(embeddings), thread_([this] { run(); }) {}

BatchPipeline::~BatchPipeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchPipeline::run() {
  try {
    for (;;) {
      std::unique_ptr<ReadyBatch> batch;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stop_ || ready_.size() < kReady; });
        if (stop_) return;
        if (!spare_.empty()) {
          batch = std::move(spare_.front());
          spare_.pop_front();
        }
      }
      if (!batch) batch = std::make_unique<ReadyBatch>();
      if (!stream_->next(batch->data)) break;
      batch->ids = embeddings_.prepare(id_bags(batch->data), batch->data.rows, std::move(batch->ids));
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::unique_ptr<ReadyBatch> BatchPipeline::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || !ready_.empty(); });
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return nullptr;
  }
  std::unique_ptr<ReadyBatch> batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

void BatchPipeline::recycle(std::unique_ptr<ReadyBatch> batch) {
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(batch));
}

}  // namespace hf
