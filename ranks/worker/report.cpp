#include "ranks/worker/report.hpp"

#include <cmath>

#include "core/version.hpp"
#include "io/atomic_file.hpp"
#include "ranks/api/context.hpp"

namespace hf {

nlohmann::json json_number(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr);
}

nlohmann::json to_json(const MetricsResult& m) {
  return {{"rows", m.rows},
          {"positives", m.positives},
          {"auc", json_number(m.auc)},
          {"auc_error", json_number(m.auc_error)},
          {"logloss", json_number(m.logloss)},
          {"normalized_entropy", json_number(m.normalized_entropy)},
          {"calibration", json_number(m.calibration)}};
}

nlohmann::json rank_report(const ProcessGroup& group, const ServerReport* server) {
  const Context& context = *group.context();
  const Usage u = usage();
  nlohmann::json j = {
      {"rank", context.me.value},
      {"host", context.host},
      {"role", to_string(context.roles.role_of_rank[static_cast<std::size_t>(context.me.value)])},
      {"cpu_seconds", u.cpu_seconds},
      {"peak_rss_bytes", u.peak_rss_bytes}};
  if (server)
    j["server"] = {{"rows", server->rows},
                   {"table_bytes", server->table_bytes},
                   {"rows_applied", server->rows_applied},
                   {"max_observed_lag", server->max_observed_lag},
                   {"deferred_pulls", server->deferred_pulls}};
  return j;
}

std::vector<nlohmann::json> exchange_reports(ProcessGroup& group, const nlohmann::json& mine) {
  std::vector<nlohmann::json> reports;
  for (const std::string& text : group.context()->control.all_gather(mine.dump(), "all ranks' reports"))
    reports.push_back(nlohmann::json::parse(text));
  return reports;
}

nlohmann::json summary(const Plan& plan, const ProcessGroup& group, const WorkerReport& w,
                       const std::vector<nlohmann::json>& ranks) {
  double cpu = 0;
  nlohmann::json rss = nlohmann::json::array();
  std::uint64_t lag = 0;
  for (const auto& r : ranks) {
    cpu += r.at("cpu_seconds").get<double>();
    rss.push_back(r.at("peak_rss_bytes"));
    if (r.contains("server")) lag = std::max(lag, r["server"]["max_observed_lag"].get<std::uint64_t>());
  }
  // The headline numbers are those on rows that were not learned from, where there are any.
  const MetricsResult& headline = w.validation ? w.validation->metrics : w.train;
  nlohmann::json j = {
      {"status", "done"},
      {"model", to_string(plan.config.model.name)},
      {"samples", w.samples},
      {"steps", w.steps},
      {"epochs", w.epochs},
      {"auc", json_number(headline.auc)},
      {"logloss", json_number(headline.logloss)},
      {"calibration", json_number(headline.calibration)},
      {"train", to_json(w.train)},
      {"validation", w.validation ? to_json(w.validation->metrics) : nlohmann::json(nullptr)},
      {"test", w.test ? to_json(w.test->metrics) : nlohmann::json(nullptr)},
      {"samples_per_second",
       json_number(w.train_seconds > 0 ? static_cast<double>(w.samples) / w.train_seconds : 0)},
      {"train_seconds", w.train_seconds},
      {"wall_seconds", w.wall_seconds},
      {"cpu_seconds", cpu},
      {"bytes_pushed", w.bytes_pushed},
      {"bytes_pulled", w.bytes_pulled},
      {"rows_pushed", w.rows_pushed},
      {"rows_pulled", w.rows_pulled},
      {"wait_seconds", w.wait_seconds},
      {"peak_rss_bytes_per_rank", rss},
      {"bad_rows", w.bad_rows},
      {"rejected_batches", w.rejected_batches},
      {"max_observed_lag", lag},
      {"transport", group.transport()},
      {"roles", group.roles()},
      {"ranks", ranks},
      {"checkpoint", w.checkpoint},
      {"config_hash", config_hash(plan.config)},
      {"version", kVersion}};
  return j;
}

void write_json_file(const std::string& path, const nlohmann::json& json) {
  write_file_atomically(path, json.dump(2) + "\n");
}

}  // namespace hf
