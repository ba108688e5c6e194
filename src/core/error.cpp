#include "core/error.hpp"

namespace hf::detail {

void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  throw CheckFailed(std::string("internal check failed: ") + expression +
                    (message.empty() ? "" : " — " + message) + " (" + file + ":" + std::to_string(line) +
                    ")");
}

}  // namespace hf::detail
