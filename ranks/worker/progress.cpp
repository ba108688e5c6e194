#include "ranks/worker/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/units.hpp"
#include "ranks/api/context.hpp"
#include "ranks/worker/report.hpp"

namespace hf {
namespace {

/// Launchers give every rank a terminal of its own, wherever their output goes: what counts is the launcher's.
bool output_is_terminal() {
  if (isatty(STDOUT_FILENO) != 1) return false;
  bool launched = false;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_PROCID"})
    launched = launched || std::getenv(name);
  if (!launched) return true;
  std::error_code error;
  const auto target =
      std::filesystem::read_symlink("/proc/" + std::to_string(getppid()) + "/fd/1", error).string();
  return !error && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

}  // namespace

Progress::Progress(ProcessGroup& group, const Config& config)
    : board_(*group.context()->window, group.context()->roles, *group.context()->worker_id),
      first_(group.worker_id() == 0),
      terminal_(output_is_terminal()),
      every_seconds_(config.train.log_every_seconds),
      epochs_(config.train.epochs),
      start_(std::chrono::steady_clock::now()),
      last_(start_),
      jsonl_path_(config.workdir + "/metrics.jsonl") {
  if (!first_) return;
  jsonl_.open(jsonl_path_, std::ios::trunc);
  if (!jsonl_) throw IoError("cannot write " + jsonl_path_ + ": " + std::strerror(errno));
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}
WorkerProgress Progress::total() const { return board_.total(); }

void Progress::write_json(const std::string& line) {
  jsonl_ << line << std::endl;  // a reader follows the file
  if (!jsonl_) throw IoError("cannot write " + jsonl_path_ + ": " + std::strerror(errno));
}

void Progress::step(const WorkerProgress& mine, const Metrics& recent, std::uint32_t epoch) {
  const auto now = std::chrono::steady_clock::now();
  const bool due = std::chrono::duration<double>(now - last_).count() >= every_seconds_;
  // The board is cheap, but not free on a network: a few times per shown line.
  if (!due && !first_ && mine.steps % 16 != 0) return;
  board_.publish(mine);
  if (!first_ || !due) {
    if (due) last_ = now;
    return;
  }
  show(recent, epoch);
}

void Progress::show(const Metrics& recent, std::uint32_t epoch) {
  const auto now = std::chrono::steady_clock::now();
  const WorkerProgress sum = board_.total();
  const double rate =
      static_cast<double>(sum.samples - last_samples_) / std::chrono::duration<double>(now - last_).count();
  last_ = now;
  last_samples_ = sum.samples;
  const double loss = sum.samples ? sum.loss_sum / static_cast<double>(sum.samples) : NAN;
  const double auc = recent.result().auc;
  std::string eta = "-";
  double done = 0;
  if (expected_samples_ > 0) {
    done = std::min(1.0, static_cast<double>(sum.samples) / static_cast<double>(expected_samples_));
    const double mean_rate = static_cast<double>(sum.samples) / seconds();
    if (mean_rate > 0)
      eta = format_seconds(static_cast<double>(expected_samples_ - std::min(expected_samples_, sum.samples)) /
                           mean_rate);
  }
  char text[256];
  std::snprintf(text, sizeof text,
                "epoch %u/%u  samples %s  %s/s  loss %.4f  AUC %.4f  pushed %s  pulled %s  ETA %s", epoch + 1,
                epochs_, format_count(sum.samples).c_str(),
                format_count(static_cast<std::uint64_t>(rate)).c_str(), loss, auc,
                format_bytes(static_cast<double>(sum.bytes_pushed)).c_str(),
                format_bytes(static_cast<double>(sum.bytes_pulled)).c_str(), eta.c_str());
  if (terminal_) {
    constexpr int kWidth = 24;
    const int filled = static_cast<int>(done * kWidth);
    std::string bar(static_cast<std::size_t>(filled), '#');
    bar.resize(kWidth, '.');
    std::cout << "\r\033[K[" << bar << "] " << text << std::flush;
    bar_open_ = true;
  } else {
    std::cout << text << std::endl;
  }
  write_json(nlohmann::json{{"kind", "train"},
                            {"epoch", epoch + 1},
                            {"seconds", seconds()},
                            {"samples", sum.samples},
                            {"steps", sum.steps},
                            {"samples_per_second", rate},
                            {"loss", json_number(loss)},
                            {"auc", json_number(auc)},
                            {"bytes_pushed", sum.bytes_pushed},
                            {"bytes_pulled", sum.bytes_pulled},
                            {"rejected_batches", sum.rejected_batches}}
                 .dump());
}

void Progress::end_bar() {
  if (bar_open_) std::cout << '\n';
  bar_open_ = false;
}

void Progress::evaluated(const char* split, const Evaluation& evaluation, std::uint32_t epoch, Step step) {
  if (!first_) return;
  end_bar();
  const MetricsResult& m = evaluation.metrics;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "%s after epoch %u, step %llu: %s rows  AUC %.4f  logloss %.4f  NE %.4f  calibration %.3f  (%s)", split,
      epoch + 1, static_cast<unsigned long long>(step), format_count(m.rows).c_str(), m.auc, m.logloss,
      m.normalized_entropy, m.calibration, format_seconds(evaluation.seconds).c_str());
  std::cout << text << std::endl;
  nlohmann::json j = to_json(m);
  j.update({{"kind", split},
            {"epoch", epoch + 1},
            {"step", step},
            {"seconds", seconds()},
            {"evaluation_seconds", evaluation.seconds}});
  write_json(j.dump());
}

}  // namespace hf
