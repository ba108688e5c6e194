#include "codec/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace hf {

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t previous) noexcept {
  // ISA-L takes the bare register and an int length; the standard's start and final inversion are done here.
  constexpr std::size_t kPiece = 1u << 30;
  auto* at = static_cast<unsigned char*>(const_cast<void*>(data));
  std::uint32_t state = ~previous;
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, kPiece);
    state = crc32_iscsi(at, static_cast<int>(piece), state);
    at += piece;
    bytes -= piece;
  }
  return ~state;
}

}  // namespace hf
