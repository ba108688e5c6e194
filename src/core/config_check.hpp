// What a configuration must satisfy beyond the type and bounds of each key. Internal to core.
// Threading: pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/yaml_tree.hpp"

namespace hf {

/// Where each key that was given came from, for messages.
struct Positions {
  struct Given {
    std::string where;
    bool overridden = false;
  };

  std::string source;
  std::map<std::string, Given> given;                          ///< dotted path → position
  std::set<std::string> failed;                                ///< paths whose value could not be read
  std::map<std::string, std::vector<std::string>> item_paths;  ///< list → path of each item

  /// Of the key or, where it was not given, of the nearest mapping around it.
  std::string where(const std::string& path) const;
  /// The key or something around it could not be read: its value means nothing.
  bool is_failed(const std::string& path) const;
  bool any_failed_below(const std::string& path) const;
  std::string item_path(const std::string& list, std::size_t index) const;
};

/// Adds every impossible combination to `problems`.
void check_config(const Config& config, const Positions& positions, Problems& problems);

}  // namespace hf
