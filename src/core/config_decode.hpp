// Reads a Tree into a Config: a visitor of config_keys.hpp that reports every wrong value and unknown key.
// Internal to core.
// Threading: one Decoder belongs to one thread.
#pragma once

#include "core/config.hpp"
#include "core/config_check.hpp"
#include "core/yaml_tree.hpp"

namespace hf {

/// Requires: `root` is a map. Values that cannot be read keep their defaults and are reported.
Config decode_config(const Tree& root, Positions& positions, Problems& problems);

/// The shorthands of features.numeric and features.categorical written out: a text becomes {name: text}, and
/// {range: "C1..C26", …} becomes one item a name. Idempotent.
void expand_features(Tree& root, Problems& problems);

}  // namespace hf
