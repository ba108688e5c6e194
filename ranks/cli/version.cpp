#include "ranks/cli/version.hpp"

#include <spdlog/spdlog.h>
#include <zlib.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "comm/mpi.hpp"
#include "core/version.hpp"
#include "io/hdf5_version.hpp"
#include "model/blas.hpp"
#include "model/torch_version.hpp"

namespace hf {

std::string version_text() {
  const BlasInfo blas = blas_info();
  std::string text = std::string("hyperframes ") + kVersion + "\n";
  const auto line = [&](const std::string& name, const std::string& value) {
    text += "  " + name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') + value + "\n";
  };
  line("MPI", mpi_library_version());
  line("LibTorch", torch_version());
  line("BLAS", blas.name + (blas.generic ? "  (generic: slow)" : ""));
  line("HDF5", hdf5_version());
  line("spdlog", std::to_string(SPDLOG_VER_MAJOR) + "." + std::to_string(SPDLOG_VER_MINOR) + "." +
                     std::to_string(SPDLOG_VER_PATCH));
  line("nlohmann-json", std::to_string(NLOHMANN_JSON_VERSION_MAJOR) + "." +
                            std::to_string(NLOHMANN_JSON_VERSION_MINOR) + "." +
                            std::to_string(NLOHMANN_JSON_VERSION_PATCH));
  line("CLI11", CLI11_VERSION);
  line("zlib", zlibVersion());
  line("compiler", __VERSION__);
  line("transports", "shm, mpi");
  return text;
}

}  // namespace hf
