// Files that are either complete or absent: written under a temporary name in the same directory, then
// fsync → rename → fsync of the directory.
// Invariants: the final name never shows partial contents; without commit() the temporary file is removed.
// Threading: one writer per path; different paths are independent.
#pragma once

#include <string>
#include <string_view>

namespace hf {

class AtomicFile {
 public:
  /// `path` is the final name. Creates nothing: the caller writes the file at temporary_path().
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  const std::string& path() const noexcept { return path_; }
  const std::string& temporary_path() const noexcept { return temporary_; }

  /// Call after the temporary file was closed. Throws: IoError with the system's reason.
  void commit();

 private:
  std::string path_, temporary_;
  bool pending_ = true;
};

/// The whole contents at once. Throws: IoError.
void write_file_atomically(const std::string& path, std::string_view contents);

/// Throws: IoError with the system's reason; FormatError when the file is larger than `limit_bytes`.
std::string read_small_file(const std::string& path, std::size_t limit_bytes = 1u << 30);

/// mkdir -p. Throws: IoError.
void make_directories(const std::string& path);

}  // namespace hf
