// What a person sees while training runs: a bar on a terminal, plain lines otherwise, and metrics.jsonl for programs.
// Worker 0 shows the sums of all workers (comm/progress_board.hpp); AUC and loss so far are progressive: each batch is
// scored before it is learned from. The AUC shown is that of worker 0's batches.
// Threading: the worker's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "comm/progress_board.hpp"
#include "core/config.hpp"
#include "core/metrics.hpp"
#include "ranks/worker/evaluation.hpp"

namespace hf {

class Progress {
 public:
  /// `expected_samples`: of the whole run over all workers, 0 = not known (no ETA).
  Progress(ProcessGroup& group, const Config& config);

  void expect(std::uint64_t samples) noexcept { expected_samples_ = samples; }
  /// After each step of this worker.
  void step(const WorkerProgress& mine, const Metrics& recent, std::uint32_t epoch);
  /// An evaluation's result, on worker 0.
  void evaluated(const char* split, const Evaluation& evaluation, std::uint32_t epoch, Step step);
  /// Seconds since the first step.
  double seconds() const;
  WorkerProgress total() const;

 private:
  void show(const Metrics& recent, std::uint32_t epoch);
  void write_json(const std::string& line);
  void end_bar();

  ProgressBoard board_;
  bool first_;
  bool terminal_;
  bool bar_open_ = false;
  double every_seconds_;
  std::uint32_t epochs_;
  std::uint64_t expected_samples_ = 0;
  std::chrono::steady_clock::time_point start_, last_;
  std::uint64_t last_samples_ = 0;
  std::ofstream jsonl_;
  std::string jsonl_path_;
};

}  // namespace hf
