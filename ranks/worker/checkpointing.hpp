// Saving and loading the model through the servers: the coordinator's part, done by worker 0.
#pragma once

#include <string>

#include "ranks/worker/session.hpp"

namespace hf {

/// Full checkpoint of this step under `checkpoint_dir`; returns its directory.
/// Collective over workers. Requires: everything pushed is applied and nobody pushes meanwhile.
std::string save_checkpoint(const Plan& plan, ProcessGroup& group, const WorkerModel& model,
                            const std::string& checkpoint_dir);

/// Loads rows and dense parameters of a step directory. Collective over workers.
/// Throws: FormatError when the checkpoint is of another model.
void load_checkpoint(ProcessGroup& group, WorkerModel& model, const std::string& step_dir);

}  // namespace hf
