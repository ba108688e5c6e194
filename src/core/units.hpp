// Sizes with units, both ways.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hf {

/// "8GB", "64 MiB", "4096", "1.5g" → bytes. KB/MB/GB/TB and KiB/… both mean powers of 1024, as in Slurm.
/// Throws: ConfigError naming the text.
std::uint64_t parse_bytes(std::string_view text);

/// 1536 → "1.5 KiB".
std::string format_bytes(double bytes);

/// 1234567 → "1,234,567".
std::string format_count(std::uint64_t n);

/// 83.4 → "1m23s".
std::string format_seconds(double seconds);

}  // namespace hf
