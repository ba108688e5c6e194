// Lines of a text file, plain or gzip.
//
// Bytes come from a ByteSource in blocks; LineReader cuts them into lines in place. Lines end with LF or
// CRLF, the last one may lack its end; a UTF-8 byte order mark at the start is dropped. A gzip file is known
// by its first two bytes; it may have several members and zero padding at its end.
// Memory: at most twice max_line_bytes plus two blocks, whatever the file holds.
// Threading: an object is used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hf {

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  /// At least one byte unless n is 0 or the source is at its end. Throws: IoError, FormatError.
  virtual std::size_t read(char* out, std::size_t n) = 0;
};

/// The (uncompressed) bytes of a file. Throws: IoError; FormatError for a file named .gz that is not gzip.
std::unique_ptr<ByteSource> open_bytes(const std::string& path);

/// The bytes of a text in memory, which must outlive the source.
std::unique_ptr<ByteSource> memory_bytes(std::string_view text);

/// What the gzip members of `compressed` hold; `name` is for messages.
std::unique_ptr<ByteSource> inflate_bytes(std::unique_ptr<ByteSource> compressed, std::string name);

struct Line {
  std::string_view text;     ///< without its end; lives until the next call of next()
  std::uint64_t number = 0;  ///< 1-based
  std::uint64_t offset = 0;  ///< of its first byte, in uncompressed bytes
  bool too_long = false;     ///< more than max_line_bytes; `text` is empty then
};

class LineReader {
 public:
  LineReader(std::unique_ptr<ByteSource> bytes, std::uint64_t max_line_bytes);
  /// False at the end. Throws: what the source throws.
  bool next(Line& line);

 private:
  void fill();
  bool emit(std::size_t length, std::size_t consumed, Line& line);

  std::unique_ptr<ByteSource> bytes_;
  std::uint64_t max_line_bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;     ///< first byte of the current line
  std::size_t scanned_ = 0;   ///< no line end before this
  std::size_t end_ = 0;       ///< end of what was read
  std::uint64_t offset_ = 0;  ///< file position of begin_
  std::uint64_t number_ = 0;
  std::uint64_t dropped_ = 0;  ///< bytes of the current, too long line that are no longer in the buffer
  bool reads_fill_ = false;    ///< the last read took all the room there was
  bool at_end_ = false;
};

}  // namespace hf
