// CRC-32C (Castagnoli), as in RFC 3720 §B.4: crc32c("123456789") = 0xE3069283. ISA-L's vectorised version.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hf {

/// `previous` chains calls: crc32c(b, n, crc32c(a, m)) is the checksum of a followed by b.
std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t previous = 0) noexcept;

}  // namespace hf
