// What the tests of the configuration share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/config.hpp"
#include "core/error.hpp"

namespace hf::test {

/// A small configuration that is right; tests add to it.
inline const std::string kGood =
    "data: {format: criteo, train: a.tsv}\n"
    "features:\n"
    "  numeric: [I1, I2]\n"
    "  categorical: [C1, {name: C2, buckets: 50}]\n";

/// The message of the ConfigError, or "" where the text is accepted.
inline std::string error_of(const std::string& yaml, const std::vector<Override>& overrides = {}) {
  try {
    parse_config(yaml, "x.yaml", overrides);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

inline std::string set_error(const std::string& key, const std::string& value) {
  return error_of(kGood, {{key, value, "--set"}});
}

}  // namespace hf::test
