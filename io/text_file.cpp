#include "io/text_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace hf {
namespace {

constexpr std::size_t kFirstBlockBytes = 4u << 10;  // small files stay cheap
constexpr std::size_t kBlockBytes = 256u << 10;
constexpr std::size_t kInflateInputBytes = 16u << 10;

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw IoError("cannot open " + path_ + ": " + std::strerror(errno));
    try {
      while (head_size_ < sizeof head_) {
        const std::size_t n = read_fd(head_ + head_size_, sizeof head_ - head_size_);
        if (n == 0) break;
        head_size_ += n;
      }
    } catch (...) {
      ::close(fd_);
      throw;
    }
  }
  ~FileBytes() override { ::close(fd_); }

  bool is_gzip() const noexcept { return head_size_ == 2 && head_[0] == '\x1f' && head_[1] == '\x8b'; }

  std::size_t read(char* out, std::size_t n) override {
    if (head_used_ < head_size_) {
      const std::size_t k = std::min(n, head_size_ - head_used_);
      std::memcpy(out, head_ + head_used_, k);
      head_used_ += k;
      return k;
    }
    return read_fd(out, n);
  }

 private:
  std::size_t read_fd(char* out, std::size_t n) {
    for (;;) {
      const ssize_t k = ::read(fd_, out, n);
      if (k >= 0) return static_cast<std::size_t>(k);
      if (errno != EINTR) throw IoError("cannot read " + path_ + ": " + std::strerror(errno));
    }
  }

  std::string path_;
  int fd_;
  // The first two bytes decide between plain and gzip. They are kept rather than read again, so that pipes
  // work too.
  char head_[2] = {};
  std::size_t head_size_ = 0, head_used_ = 0;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view text) : rest_(text) {}
  std::size_t read(char* out, std::size_t n) override {
    const std::size_t k = rest_.copy(out, n);
    rest_.remove_prefix(k);
    return k;
  }

 private:
  std::string_view rest_;
};

class InflateBytes final : public ByteSource {
 public:
  InflateBytes(std::unique_ptr<ByteSource> compressed, std::string name)
      : compressed_(std::move(compressed)), name_(std::move(name)), input_(kInflateInputBytes) {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw IoError("cannot start zlib for " + name_);
  }
  ~InflateBytes() override { inflateEnd(&stream_); }

  std::size_t read(char* out, std::size_t n) override {
    if (n == 0) return 0;
    stream_.next_out = reinterpret_cast<Bytef*>(out);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(n, std::numeric_limits<uInt>::max()));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      refill();
      if (between_members_ && !start_member()) return 0;
      switch (inflate(&stream_, Z_NO_FLUSH)) {
        case Z_OK:
          break;
        case Z_STREAM_END:
          between_members_ = true;
          ++members_;
          break;
        case Z_BUF_ERROR:
          if (input_at_end_ && stream_.avail_in == 0)
            throw FormatError(name_ + ": truncated gzip: it ends after " + std::to_string(input_bytes_) +
                              " bytes in the middle of the compressed data");
          break;
        default:
          throw FormatError(name_ + ": damaged gzip near byte " +
                            std::to_string(input_bytes_ - stream_.avail_in) + ": " +
                            (stream_.msg != nullptr ? stream_.msg : "unknown error"));
      }
    }
    return wanted - stream_.avail_out;
  }

 private:
  void refill() {
    if (stream_.avail_in > 0 || input_at_end_) return;
    const std::size_t n = compressed_->read(input_.data(), input_.size());
    input_bytes_ += n;
    input_at_end_ = n == 0;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(n);
  }

  /// False at the end of the file. Zeros after a member are the padding of tapes and block devices.
  bool start_member() {
    for (;;) {
      if (members_ > 0)
        while (stream_.avail_in > 0 && *stream_.next_in == 0) {
          ++stream_.next_in;
          --stream_.avail_in;
          padded_ = true;
        }
      if (stream_.avail_in > 0) break;
      if (input_at_end_) {
        if (members_ == 0) throw FormatError(name_ + ": truncated gzip: the file is empty");
        return false;
      }
      refill();
    }
    if (padded_ || (members_ > 0 && *stream_.next_in != 0x1f))
      throw FormatError(name_ + ": bytes that are not gzip follow the compressed data, before byte " +
                        std::to_string(input_bytes_ - stream_.avail_in + 1));
    if (members_ > 0) inflateReset(&stream_);
    between_members_ = false;
    return true;
  }

  std::unique_ptr<ByteSource> compressed_;
  std::string name_;
  std::vector<char> input_;
  z_stream stream_{};
  std::uint64_t input_bytes_ = 0, members_ = 0;
  bool input_at_end_ = false, between_members_ = true, padded_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  auto file = std::make_unique<FileBytes>(path);
  if (file->is_gzip()) return inflate_bytes(std::move(file), path);
  if (path.ends_with(".gz"))
    throw FormatError(path + ": named .gz, but its first bytes are not those of a gzip file");
  return file;
}

std::unique_ptr<ByteSource> memory_bytes(std::string_view text) {
  return std::make_unique<MemoryBytes>(text);
}

std::unique_ptr<ByteSource> inflate_bytes(std::unique_ptr<ByteSource> compressed, std::string name) {
  return std::make_unique<InflateBytes>(std::move(compressed), std::move(name));
}

LineReader::LineReader(std::unique_ptr<ByteSource> bytes, std::uint64_t max_line_bytes)
    : bytes_(std::move(bytes)), max_line_bytes_(max_line_bytes), buffer_(kFirstBlockBytes) {
  while (!at_end_ && end_ < 3) fill();
  if (std::string_view(buffer_.data(), end_).starts_with("\xEF\xBB\xBF")) begin_ = scanned_ = offset_ = 3;
}

void LineReader::fill() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    scanned_ -= begin_;
    begin_ = 0;
  }
  if ((reads_fill_ && buffer_.size() < kBlockBytes) ||
      buffer_.size() - end_ < std::min(buffer_.size(), kBlockBytes) / 2)
    buffer_.resize(buffer_.size() * 2);
  const std::size_t n = bytes_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += n;
  reads_fill_ = end_ == buffer_.size();
  at_end_ = n == 0;
}

bool LineReader::emit(std::size_t length, std::size_t consumed, Line& line) {
  line.number = ++number_;
  line.offset = offset_;
  const char* text = buffer_.data() + begin_;
  if (length > 0 && text[length - 1] == '\r') --length;
  line.too_long = dropped_ > 0 || length > max_line_bytes_;
  line.text = line.too_long ? std::string_view() : std::string_view(text, length);
  begin_ += consumed;
  scanned_ = begin_;
  offset_ += dropped_ + consumed;
  dropped_ = 0;
  return true;
}

bool LineReader::next(Line& line) {
  for (;;) {
    if (end_ > scanned_) {
      const char* from = buffer_.data() + scanned_;
      if (const void* found = std::memchr(from, '\n', end_ - scanned_)) {
        const auto length =
            static_cast<std::size_t>(static_cast<const char*>(found) - buffer_.data()) - begin_;
        return emit(length, length + 1, line);
      }
      scanned_ = end_;
    }
    if (at_end_) {
      if (begin_ == end_ && dropped_ == 0) return false;
      return emit(end_ - begin_, end_ - begin_, line);
    }
    // One byte more than the limit may still be the CR of a CRLF.
    if (end_ > begin_ && end_ - begin_ - 1 > max_line_bytes_) {
      dropped_ += end_ - begin_;
      begin_ = scanned_ = end_ = 0;
    }
    fill();
  }
}

}  // namespace hf
