// Batches on their way to the compute thread: read (by the stream's own thread), ids merged per table (by a thread
// here), handed over through a short queue.
// Threading: next() and recycle() from one thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/batch.hpp"
#include "hyperframes/embedding.hpp"
#include "io/dataset.hpp"

namespace hf {

struct ReadyBatch {
  Batch data;
  DistributedEmbeddingCollection::PreparedPtr ids;
};

class BatchPipeline {
 public:
  BatchPipeline(std::unique_ptr<BatchStream> stream, const DistributedEmbeddingCollection& embeddings);
  ~BatchPipeline();

  /// The next batch, or null at the end. Throws: what the stream throws.
  std::unique_ptr<ReadyBatch> next();
  /// Gives a batch's memory back.
  void recycle(std::unique_ptr<ReadyBatch> batch);
  StreamStats stats() const { return stream_->stats(); }
  std::uint64_t total_rows_hint() const { return stream_->total_rows_hint(); }

 private:
  void run();
  std::unique_ptr<BatchStream> stream_;
  const DistributedEmbeddingCollection& embeddings_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<ReadyBatch>> ready_, spare_;
  bool stop_ = false, ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

/// The batch's categorical columns as the inputs of DistributedEmbeddingCollection::prepare.
std::vector<IdBags> id_bags(const Batch& batch);

}  // namespace hf
