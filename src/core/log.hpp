// The log of a rank: spdlog to stderr, each line with time, level, rank and role, flushed line by line (a rank's
// output is a pipe: what a killed rank printed must not be lost).
// Threading: safe from any thread.
#pragma once

#include <spdlog/spdlog.h>

#include <string>

namespace hf {

/// Call once per process, as soon as rank and role are known. `role` is "ps", "worker", "hybrid" or "".
/// The level comes from HF_LOG_LEVEL (trace … error), default info.
void init_log(int rank, const std::string& role);

}  // namespace hf
