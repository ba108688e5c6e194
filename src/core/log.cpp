#include "core/log.hpp"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <cstdlib>

namespace hf {

void init_log(int rank, const std::string& role) {
  auto logger =
      std::make_shared<spdlog::logger>("hf", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  const std::string who =
      rank < 0 ? "" : " [" + std::to_string(rank) + (role.empty() ? "" : " " + role) + "]";
  logger->set_pattern("%H:%M:%S.%e %^%l%$" + who + " %v");
  if (const char* level = std::getenv("HF_LOG_LEVEL")) logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace hf
