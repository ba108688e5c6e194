#include "io/inputs.hpp"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"

namespace hf {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const std::string& name) { return name.empty() || name[0] == '.' || name[0] == '_'; }

void add_file(const std::string& path, std::vector<std::string>& files, std::vector<std::string>& problems) {
  if (::access(path.c_str(), R_OK) != 0)
    problems.push_back("cannot read " + path + ": " + std::strerror(errno));
  else
    files.push_back(path);
}

void add_directory(const std::string& path, std::vector<std::string>& files,
                   std::vector<std::string>& problems) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // an entry that vanished meanwhile is no file
    if (!is_hidden(it->path().filename().string()) && it->is_regular_file(ignored))
      found.push_back(it->path().string());
  }
  if (error) {
    problems.push_back("cannot list directory " + path + ": " + error.message());
    return;
  }
  if (found.empty())
    problems.push_back("directory " + path + " has no files (names that start with . or _ do not count)");
  std::sort(found.begin(), found.end());
  for (const auto& f : found) add_file(f, files, problems);
}

void add_path(const std::string& path, std::vector<std::string>& files, std::vector<std::string>& problems) {
  std::error_code ignored;  // "cannot tell" ends as "cannot read", with the reason from access()
  if (fs::is_directory(path, ignored))
    add_directory(path, files, problems);
  else
    add_file(path, files, problems);
}

void add_glob(const std::string& pattern, std::vector<std::string>& files,
              std::vector<std::string>& problems) {
  const bool hidden_wanted = is_hidden(fs::path(pattern).filename().string());
  glob_t matches{};
  const int rc = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &matches);
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < matches.gl_pathc; ++i)
    if (hidden_wanted || !is_hidden(fs::path(matches.gl_pathv[i]).filename().string()))
      paths.emplace_back(matches.gl_pathv[i]);
  ::globfree(&matches);
  if (rc != 0 && rc != GLOB_NOMATCH) {
    problems.push_back("cannot list " + pattern +
                       (rc == GLOB_NOSPACE ? ": out of memory" : ": a directory cannot be read"));
    return;
  }
  if (paths.empty()) problems.push_back("nothing matches " + pattern);
  // glob() sorts by the locale; the order of rows must not depend on it.
  std::sort(paths.begin(), paths.end());
  for (const auto& p : paths) add_path(p, files, problems);
}

}  // namespace

std::vector<std::string> expand_inputs(const std::vector<std::string>& names,
                                       std::vector<std::string>& problems) {
  std::vector<std::string> files;
  for (const auto& name : names) {
    std::error_code ignored;
    if (name.find_first_of("*?[") != std::string::npos && !fs::exists(name, ignored))
      add_glob(name, files, problems);
    else
      add_path(name, files, problems);
  }
  return files;
}

std::vector<std::string> expand_inputs(const std::vector<std::string>& names) {
  std::vector<std::string> problems;
  auto files = expand_inputs(names, problems);
  if (problems.empty()) return files;
  std::string text = "input files:";
  for (const auto& p : problems) text += "\n  " + p;
  throw IoError(text);
}

}  // namespace hf
