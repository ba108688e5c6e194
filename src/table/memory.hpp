// Zeroed memory for records: small pieces from the allocator, large ones from the kernel with huge pages
// advised, so that a random row costs a cache miss and not a walk of the page table too.
// Invariants: data() is 64-byte aligned; 2 MiB aligned where bytes ≥ 2 MiB.
// Threading: a plain owner; movable.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace hf {

class Memory {
 public:
  Memory() = default;
  /// Throws: std::bad_alloc.
  explicit Memory(std::size_t bytes);
  ~Memory() { release(); }
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        reserved_(std::exchange(other.reserved_, 0)),
        mapped_(other.mapped_) {}
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) {
      release();
      data_ = std::exchange(other.data_, nullptr);
      reserved_ = std::exchange(other.reserved_, 0);
      mapped_ = other.mapped_;
    }
    return *this;
  }

  float* floats() const noexcept { return static_cast<float*>(data_); }
  std::byte* bytes() const noexcept { return static_cast<std::byte*>(data_); }
  /// Bytes taken from the system, rounding included.
  std::size_t reserved_bytes() const noexcept { return reserved_; }

 private:
  void release() noexcept;

  void* data_ = nullptr;
  std::size_t reserved_ = 0;
  bool mapped_ = false;
};

/// Many pieces that live as long as the arena, cut from chunks that grow with it (by 1/16), so that the
/// pieces of a large table lie on huge pages while a small one reserves little.
class Arena {
 public:
  /// Zeroed, 64-byte aligned. Throws: std::bad_alloc.
  float* allocate(std::size_t bytes);
  std::size_t reserved_bytes() const noexcept { return reserved_ + chunks_.capacity() * sizeof(Memory); }

 private:
  std::vector<Memory> chunks_;
  std::size_t used_ = 0;  // of the last chunk
  std::size_t reserved_ = 0;
};

}  // namespace hf
