// Names of inputs, as they stand in a config, to files: files, directories and globs.
// Threading: functions without state.
#pragma once

#include <string>
#include <vector>

namespace hf {

/// The files behind `names`, in the order of `names`; those of a directory or glob sorted by name. A
/// directory gives its regular files, not those of its subdirectories. Files whose name starts with "." or
/// "_" (as in _SUCCESS) are left out unless they are named in full. A directory that a glob matches is taken
/// as a directory.
/// Problems (nothing there, not readable, a directory without files, a glob without matches) go to
/// `problems`.
std::vector<std::string> expand_inputs(const std::vector<std::string>& names,
                                       std::vector<std::string>& problems);

/// The same. Throws: IoError listing all problems.
std::vector<std::string> expand_inputs(const std::vector<std::string>& names);

}  // namespace hf
