#include "io/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/error.hpp"

namespace hf {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path, int error = errno) {
  throw IoError(path + ": " + what + ": " + std::strerror(error));
}

/// Closes on every way out; close() reports what a delayed write had to say.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags)
      : path_(path), fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail("cannot open", path);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }
  void sync() const {
    if (::fsync(fd_) != 0) fail("cannot flush to disk", path_);
  }
  void close() {
    if (::close(std::exchange(fd_, -1)) != 0) fail("cannot close", path_);
  }

 private:
  std::string path_;
  int fd_;
};

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      pending_(std::exchange(other.pending_, false)) {}

AtomicFile::~AtomicFile() {
  if (pending_) ::unlink(temporary_.c_str());
}

void AtomicFile::commit() {
  {
    Descriptor file(temporary_, O_RDWR);
    file.sync();
    file.close();
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename " + temporary_, path_);
  pending_ = false;
  Descriptor directory(parent_of(path_), O_RDONLY | O_DIRECTORY);
  // Some file systems refuse to fsync a directory (EINVAL); there the rename is as durable as it can be.
  if (::fsync(directory.get()) != 0 && errno != EINVAL) fail("cannot flush the directory of", path_);
}

void write_file_atomically(const std::string& path, std::string_view contents) {
  AtomicFile file(path);
  {
    Descriptor out(file.temporary_path(), O_WRONLY | O_CREAT | O_TRUNC);
    while (!contents.empty()) {
      const ssize_t n = ::write(out.get(), contents.data(), contents.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("cannot write", file.temporary_path());
      contents.remove_prefix(static_cast<std::size_t>(n));
    }
    out.close();
  }
  file.commit();
}

std::string read_small_file(const std::string& path, std::size_t limit_bytes) {
  Descriptor in(path, O_RDONLY);
  struct stat info {};
  if (::fstat(in.get(), &info) != 0) fail("cannot stat", path);
  if (S_ISDIR(info.st_mode)) fail("cannot read", path, EISDIR);
  std::string contents;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(in.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot read", path);
    if (n == 0) return contents;
    contents.append(buffer, static_cast<std::size_t>(n));
    if (contents.size() > limit_bytes)
      throw FormatError(path + ": larger than " + std::to_string(limit_bytes) +
                        " bytes, which this kind of file never is");
  }
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw IoError(path + ": cannot create the directory: " + error.message());
  if (!std::filesystem::is_directory(path, error)) throw IoError(path + ": exists and is not a directory");
}

}  // namespace hf
