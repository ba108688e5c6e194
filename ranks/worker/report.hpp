// The files a run leaves in its working directory: summary.json, eval.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/metrics.hpp"
#include "ranks/server/server.hpp"
#include "ranks/worker/session.hpp"
#include "ranks/worker/worker.hpp"

namespace hf {

/// A number, or null where it is not defined.
nlohmann::json json_number(double value);
nlohmann::json to_json(const MetricsResult& metrics);

/// What one rank tells at the end.
nlohmann::json rank_report(const ProcessGroup& group, const ServerReport* server);

/// Everybody's report, by rank. Collective over all ranks.
std::vector<nlohmann::json> exchange_reports(ProcessGroup& group, const nlohmann::json& mine);

/// WORKDIR/summary.json of a finished run. See README.md for the keys.
nlohmann::json summary(const Plan& plan, const ProcessGroup& group, const WorkerReport& worker,
                       const std::vector<nlohmann::json>& ranks);

/// Writes a JSON file in one piece (temporary file, rename). Throws: IoError.
void write_json_file(const std::string& path, const nlohmann::json& json);

}  // namespace hf
