#include "comm/launch.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

namespace hf {
namespace {

std::string trimmed(std::string_view text) {
  constexpr const char* kBlank = " \t\r\"'";
  const std::size_t begin = text.find_first_not_of(kBlank);
  return begin == text.npos ? std::string()
                            : std::string(text.substr(begin, text.find_last_not_of(kBlank) - begin + 1));
}

bool names(const std::string& list, std::string_view component) {
  std::stringstream stream(list);
  for (std::string item; std::getline(stream, item, ',');)
    if (trimmed(item) == component) return true;
  return false;
}

/// A file's value that our setting would override.
bool chooses(const std::string& key, const std::string& value) {
  if (value.empty()) return false;
  if (value[0] != '^') return true;
  return key == "btl" && (names(value.substr(1), "self") || names(value.substr(1), "sm"));
}

}  // namespace

std::map<std::string, std::string> mpi_settings(const std::map<std::string, std::string>& environment,
                                                const std::map<std::string, std::string>& parameter_files) {
  const auto of = [&](const char* name) {
    const auto at = environment.find(name);
    return at == environment.end() ? std::string() : at->second;
  };
  for (const std::string key : {"btl", "pml", "mtl", "osc"}) {
    if (environment.contains("OMPI_MCA_" + key)) return {};
    if (const auto at = parameter_files.find(key); at != parameter_files.end() && chooses(key, at->second))
      return {};
  }
  const std::string world = of("OMPI_COMM_WORLD_SIZE"), local = of("OMPI_COMM_WORLD_LOCAL_SIZE");
  // Other launchers (srun) say nothing of Open MPI's, but speak PMIx.
  const bool alone = world.empty() && !environment.contains("PMIX_RANK") && !environment.contains("PMI_RANK");
  if (!alone && (world.empty() || world != local)) return {};
  return {{"OMPI_MCA_btl", "self,sm"}};
}

std::map<std::string, std::string> parse_parameter_file(const std::string& text) {
  std::map<std::string, std::string> values;
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find('#'));
    if (const std::size_t equals = line.find('='); equals != line.npos)
      values[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
  return values;
}

void prepare_mpi_environment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != text.npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  // As Open MPI looks for them: the user's file counts more than the machine's. A list of files replaces both.
  std::vector<std::string> files;
  if (const auto list = environment.find("OMPI_MCA_mca_base_param_files"); list != environment.end()) {
    std::stringstream stream(list->second);
    for (std::string file; std::getline(stream, file, ',');) files.push_back(file);
  } else {
    if (const char* home = std::getenv("HOME"))
      files.push_back(std::string(home) + "/.openmpi/mca-params.conf");
    files.emplace_back("/etc/openmpi/openmpi-mca-params.conf");
  }
  std::map<std::string, std::string> values;
  for (const std::string& file : files) {
    std::ifstream stream(file);
    const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    values.merge(parse_parameter_file(text));  // what an earlier file says stays
  }
  for (const auto& [name, value] : mpi_settings(environment, values)) setenv(name.c_str(), value.c_str(), 1);
}

}  // namespace hf
