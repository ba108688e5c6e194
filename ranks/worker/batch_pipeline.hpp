// Batches on their way to the compute thread: read (by the stream's own thread), ids merged per table (by a stage's
// thread), handed over through a short queue.
#pragma once

#include <memory>
#include <vector>

#include "hyperframes/embedding.hpp"
#include "io/batch_stage.hpp"

namespace hf {

/// The batch's categorical columns as the inputs of DistributedEmbeddingCollection::prepare.
std::vector<IdBags> id_bags(const Batch& batch);

/// `made`: the batch's ids as they travel.
class BatchPipeline : public BatchStage<DistributedEmbeddingCollection::PreparedPtr> {
 public:
  /// Requires: `embeddings` outlives the pipeline.
  BatchPipeline(std::unique_ptr<BatchStream> stream, const DistributedEmbeddingCollection& embeddings);
};

using ReadyBatch = BatchPipeline::Item;

}  // namespace hf
