#include "table/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hf {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = 2U << 20;
constexpr std::size_t kMapFrom = 256U << 10;  // smaller pieces share pages in the allocator's arenas

std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

void* map_pages(std::size_t bytes) {
  const std::size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* raw = ::mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) throw std::bad_alloc();
  if (slack == 0) return raw;
  auto* begin = static_cast<std::byte*>(raw);
  const std::size_t skip =
      round_up(reinterpret_cast<std::uintptr_t>(raw), kHugePage) - reinterpret_cast<std::uintptr_t>(raw);
  if (skip > 0) ::munmap(begin, skip);
  if (slack > skip) ::munmap(begin + skip + bytes, slack - skip);
  ::madvise(begin + skip, bytes,
            MADV_HUGEPAGE);  // advice only: without huge pages the table is slower, not wrong
  return begin + skip;
}

}  // namespace

Memory::Memory(std::size_t bytes) {
  if (bytes == 0) return;
  mapped_ = bytes >= kMapFrom;
  if (mapped_) {
    reserved_ = round_up(bytes, kPage);
    data_ = map_pages(reserved_);
  } else {
    reserved_ = round_up(bytes, 64);
    data_ = std::aligned_alloc(64, reserved_);
    if (data_ == nullptr) throw std::bad_alloc();
    std::memset(data_, 0, reserved_);
  }
}

void Memory::release() noexcept {
  if (data_ == nullptr) return;
  if (mapped_)
    ::munmap(data_, reserved_);
  else
    std::free(data_);
  data_ = nullptr;
  reserved_ = 0;
}

float* Arena::allocate(std::size_t bytes) {
  constexpr std::size_t kSmallestChunk = 16U << 10;
  constexpr std::size_t kLargestChunk = 64U << 20;
  bytes = round_up(bytes, 64);
  if (chunks_.empty() || used_ + bytes > chunks_.back().reserved_bytes()) {
    std::size_t chunk = std::max(bytes, std::clamp(reserved_ / 16, kSmallestChunk, kLargestChunk));
    if (chunk >= kHugePage) chunk = round_up(chunk, kHugePage);
    chunks_.emplace_back(chunk);
    reserved_ += chunks_.back().reserved_bytes();
    used_ = 0;
  }
  std::byte* piece = chunks_.back().bytes() + used_;
  used_ += bytes;
  return reinterpret_cast<float*>(piece);
}

}  // namespace hf
