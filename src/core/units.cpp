#include "core/units.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "core/error.hpp"

namespace hf {

std::uint64_t parse_bytes(std::string_view text) {
  const auto fail = [&](const char* why) -> ConfigError {
    return ConfigError("not a size: \"" + std::string(text) + "\" (" + why +
                       "; expected for instance 4096, 64MiB or 8GB)");
  };
  std::size_t end = text.size();
  while (end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1]))) --end;
  double value = 0;
  const auto [ptr, ec] = std::from_chars(text.data(), text.data() + end, value);
  if (ec != std::errc() || !std::isfinite(value) || value < 0) throw fail("no number");
  std::string unit;
  for (const char* p = ptr; p != text.data() + end; ++p)
    if (!std::isspace(static_cast<unsigned char>(*p)))
      unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  double factor = 1;
  if (!unit.empty() && unit != "b") {
    static constexpr std::array<char, 5> kPrefixes = {'k', 'm', 'g', 't', 'p'};
    bool known = false;
    for (const char prefix : kPrefixes) {
      factor *= 1024;
      if (unit[0] == prefix) {
        known = unit.size() == 1 || unit.substr(1) == "b" || unit.substr(1) == "ib";
        break;
      }
    }
    if (!known) throw fail("unknown unit");
  }
  const double bytes = value * factor;
  if (bytes >= 0x1p63) throw fail("too large");
  return static_cast<std::uint64_t>(std::llround(bytes));
}

std::string format_bytes(double bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (std::fabs(bytes) >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text.data();
}

std::string format_count(std::uint64_t n) {
  std::string digits = std::to_string(n);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string format_seconds(double seconds) {
  std::array<char, 48> text{};
  const auto total = static_cast<long long>(seconds);
  if (seconds < 60) {
    std::snprintf(text.data(), text.size(), "%.1fs", seconds);
  } else if (total < 3600) {
    std::snprintf(text.data(), text.size(), "%lldm%02llds", total / 60, total % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lldh%02lldm", total / 3600, total % 3600 / 60);
  }
  return text.data();
}

}  // namespace hf
