// The training loop of a worker (ranks/worker/worker.hpp) with the model that other systems are compared on: 26 features,
// 13 numerics, MLP 400-400-400-1, SGD, ids by Zipf's law with exponent 1.05, batches that are in memory already.
// Threading: the worker's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "hyperframes/process_group.hpp"

namespace hf {

inline constexpr std::size_t kTrainBenchmarkBatch = 2048;

/// `mark` is called after the warm-up and after each repetition of `steps_each` steps, with all workers together.
/// Collective over workers.
void run_train_benchmark(std::uint64_t rows, std::uint32_t dim, std::uint32_t repetitions,
                         std::uint32_t steps_each, ProcessGroup& group, const std::function<void()>& mark);

}  // namespace hf
