// What every rank of train, eval and predict sets up in the same way: the checked configuration, the process group,
// the model with its tables, and the reports at the end.
// Threading: the main thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/config.hpp"
#include "core/error.hpp"
#include "core/schema.hpp"
#include "hyperframes/hyperframes.hpp"
#include "model/model.hpp"

namespace hf {

/// Problems that all ranks know and rank 0 has printed: ends the program with the code, without aborting anybody.
struct AgreedError : Error {
  using Error::Error;
};

/// Every rank gives the problem it found ("" = none); when there is any, rank 0 prints one list and every rank throws
/// AgreedError. Collective over all ranks. Requires: MPI started.
void agree(const std::string& problem, ExitCode code);

/// A configuration and everything that follows from it and from the data's description.
struct Plan {
  Config config;
  Schema schema;
  EmbeddingPlan embeddings;
};

/// Throws: ConfigError, DataError, IoError, FormatError, each with all problems of its stage.
Plan make_plan(const Config& config);

ProcessGroupOptions group_options(const Config& config);

/// A worker's model: the dense part here, the tables on the servers. Collective over workers.
struct WorkerModel {
  explicit WorkerModel(const Plan& plan);

  std::shared_ptr<CtrModel> network;
  DistributedEmbeddingCollection embeddings;
  std::unique_ptr<AsyncOptimizer> optimizer;
};

/// Shape: [rows, num_dense] and [rows]; views of the batch's memory.
torch::Tensor dense_tensor(const Batch& batch);
torch::Tensor label_tensor(const Batch& batch);

/// Resources of this process so far.
struct Usage {
  double cpu_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;
};
Usage usage();

}  // namespace hf
