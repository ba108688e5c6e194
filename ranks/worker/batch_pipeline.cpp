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
    : BatchStage(std::move(stream), kReady,
                 [&embeddings](const Batch& batch, DistributedEmbeddingCollection::PreparedPtr& ids) {
                   ids = embeddings.prepare(id_bags(batch), batch.rows, std::move(ids));
                 }) {}

}  // namespace hf
