// Embedding tables whose rows live on the servers.
//
// DistributedEmbedding is used like torch::nn::Embedding: forward pulls the rows of the batch's unique ids, autograd
// works, and the next step() of an optimizer of hyperframes/optimizer.hpp pushes the gradients that backward passes gave the
// rows since the last zero_grad(), in any order of calls that PyTorch takes.
// DistributedEmbeddingCollection looks up many features in many tables at once, as bags.
// Threading: one thread; `prepare` may run in another one.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hyperframes/table_options.hpp"

namespace hf {

class Context;

struct DistributedEmbeddingOptions {
  /// Of the table; "" = "embedding_N" in order of creation. Not "dense", no "/"; case does not tell names apart.
  std::string name;
  TableKind kind = TableKind::static_rows;  ///< dynamic: any 64-bit id, num_embeddings is ignored
  InitSpec init{.kind = InitKind::normal, .scale = 1.0F};  ///< as torch::nn::Embedding
  std::optional<OptimizerSpec> optimizer;                  ///< unset: that of the hf::Async… optimizer
};

class DistributedEmbeddingImpl : public torch::nn::Module {
 public:
  /// Every worker creates the same embeddings in the same order.
  DistributedEmbeddingImpl(std::int64_t num_embeddings, std::int64_t dim,
                           DistributedEmbeddingOptions options = {});
  ~DistributedEmbeddingImpl() override;

  /// ids: int64, any shape. Returns float32 of shape [..., dim].
  /// Throws: hf::DataError naming table and id for an id out of range.
  torch::Tensor forward(const torch::Tensor& ids);

  /// initiate_pull for a forward with exactly these ids after the next step(): call it before the current batch is
  /// computed. Guesses that are not asked for in that step are given up.
  void prefetch(const torch::Tensor& ids);

  const std::string& name() const noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};
TORCH_MODULE(DistributedEmbedding);

/// The ids of one lookup for a batch, as bags. The memory belongs to the caller and must live until step(), or until
/// zero_grad() where the step is skipped.
struct IdBags {
  std::span<const std::uint64_t> ids;
  std::span<const std::uint32_t> offsets;  ///< batch + 1, or empty: one id per row
  std::span<const float> weights;          ///< one per id, or empty
};

struct CollectionTable {
  std::string name;
  TableKind kind = TableKind::static_rows;
  std::uint64_t rows = 0;
  std::uint32_t dim = 0;
  InitSpec init;
  OptimizerSpec optimizer;
};

struct CollectionLookup {
  std::size_t input = 0;  ///< index into the inputs of prepare()
  std::size_t table = 0;
  bool mean = false;  ///< mean instead of sum over a bag; an empty bag is 0
};

/// Lookups of equal dim, delivered as one tensor. A table belongs to one group.
using CollectionGroup = std::vector<CollectionLookup>;

class DistributedEmbeddingCollection {
 public:
  DistributedEmbeddingCollection(std::vector<CollectionTable> tables, std::vector<CollectionGroup> groups);
  ~DistributedEmbeddingCollection();

  /// A batch whose ids are merged per table: what travels.
  class Prepared;
  struct PreparedDeleter {
    void operator()(Prepared* p) const;
  };
  using PreparedPtr = std::unique_ptr<Prepared, PreparedDeleter>;

  /// Merges duplicate ids. No communication; from any thread.
  PreparedPtr prepare(std::vector<IdBags> inputs, std::size_t batch, PreparedPtr reuse = nullptr) const;
  /// Sends the ids, as early as possible. `ahead`: steps between now and the step that uses them (0 or 1).
  void initiate_pull(Prepared& batch, unsigned ahead = 0);
  /// Waits for the rows. One tensor per group, shape [batch, lookups, dim]. With grad mode on, the step() after a backward
  /// pass pushes their gradients; `batch` must live, and not be reused, until then (zero_grad() where it is skipped).
  std::vector<torch::Tensor> forward(Prepared& batch);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// While one lives, pulls neither create rows nor wait for the staleness bound (and nothing is pushed).
class InferenceGuard {
 public:
  InferenceGuard();
  ~InferenceGuard();
  InferenceGuard(const InferenceGuard&) = delete;
  InferenceGuard& operator=(const InferenceGuard&) = delete;

 private:
  bool previous_;
  torch::NoGradGuard no_grad_;
};

}  // namespace hf
