// `hyperframes bench`: the product's own measurements. Every figure is a ratio within one run or says what it counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/config.hpp"

namespace hf {

struct BenchRequest {
  std::string name = "all";  ///< gather, pull, train, idle, all
  std::uint64_t rows = 1'000'000;
  std::uint32_t dim = 16;
  std::uint32_t repeat = 5;
  std::uint32_t steps = 60;  ///< train: measured steps per worker and repetition
  std::string json;          ///< file for the results, "-" = standard output
  ClusterConfig cluster;
  std::uint32_t threads = 0;
  std::uint64_t staleness_bound = 1;
};

/// gather  server gather + optimizer apply against a bare prefetching loop over the same rows (no MPI)
/// pull    round trip of 30,000 rows, worker and server side together
/// train   end to end: 26 features, dim 16, 13 numerics, MLP 400-400-400-1, batch 2,048, SGD, Zipf 1.05
/// idle    CPU use of a server without requests
int run_bench(const BenchRequest& request);

}  // namespace hf
