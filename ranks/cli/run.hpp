// The subcommands that run on all ranks: set-up, roles, the loop of each role, reports.
// Every function returns the exit code; errors that all ranks share were printed once, others end the job (comm/abort.hpp).
#pragma once

#include <string>
#include <vector>

#include "core/config.hpp"
#include "io/dataset.hpp"

namespace hf {

struct RunRequest {
  std::string config_path;
  std::vector<Override> overrides;
  std::string checkpoint = "latest";  ///< eval, predict
  Split split = Split::validation;    ///< eval, predict
  std::string output;                 ///< predict
};

int run_train(const RunRequest& request);
int run_eval(const RunRequest& request);
int run_predict(const RunRequest& request);
/// Prints rank → host → role → shards and the memory plan.
int run_dry(const RunRequest& request);

}  // namespace hf
