// HDF5 as this project uses it: files of row-wise datasets, every call checked, every handle owned. No other
// file calls the library, but for its version (hdf5_version).
//
// A Dataset is a table of rows: `width` elements of one type per row (width 1 is stored one-dimensional),
// chunked by rows, extended by append(). Chunks carry a checksum (fletcher32), metadata too (file format of
// HDF5 1.10), so that a flipped byte is an error and not a wrong number.
// Threading: every call takes one lock of the process, because the library keeps its state per process and
// not
//   every build of it has locks of its own. Objects of different threads are independent otherwise.
// Throws: FormatError when a file is not what was expected, IoError when the system refused; both name the
//   file, the object and the library's own reason. The library's habit of printing errors is silenced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hf::h5 {

enum class Type : std::uint8_t { u8, u32, u64, f32 };

template <class T>
constexpr Type type_of() {
  static_assert(sizeof(T) == 0, "u8, u32, u64 or f32");
  return Type::u8;
}
template <>
constexpr Type type_of<std::uint8_t>() {
  return Type::u8;
}
template <>
constexpr Type type_of<std::uint32_t>() {
  return Type::u32;
}
template <>
constexpr Type type_of<std::uint64_t>() {
  return Type::u64;
}
template <>
constexpr Type type_of<float>() {
  return Type::f32;
}

const char* to_string(Type type) noexcept;

/// An owned hid_t (which is 64 bits in every HDF5 since 1.10).
class Handle {
 public:
  Handle() = default;
  Handle(std::int64_t id, int (*close)(std::int64_t)) noexcept : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& o) noexcept : id_(std::exchange(o.id_, -1)), close_(o.close_) {}
  Handle& operator=(Handle&& o) noexcept {
    if (this != &o) {
      reset();
      id_ = std::exchange(o.id_, -1);
      close_ = o.close_;
    }
    return *this;
  }
  std::int64_t get() const noexcept { return id_; }
  /// Closes; negative when the library reports an error (for a file: the last writes failed).
  int reset() noexcept;

 private:
  std::int64_t id_ = -1;
  int (*close_)(std::int64_t) = nullptr;
};

class Dataset {
 public:
  Dataset() = default;
  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t width() const noexcept { return width_; }
  Type type() const noexcept { return type_; }

  /// Requires: `data` has rows · width elements of T == type().
  template <class T>
  void append(const T* data, std::uint64_t rows) {
    append_raw(data, rows, type_of<T>());
  }
  /// Rows [first, first + rows). A stored u32 may be read as u64. Throws: FormatError past the end.
  template <class T>
  void read(std::uint64_t first, std::uint64_t rows, T* out) const {
    read_raw(first, rows, out, type_of<T>());
  }

 private:
  friend class File;
  void append_raw(const void* data, std::uint64_t rows, Type type);
  void read_raw(std::uint64_t first, std::uint64_t rows, void* out, Type type) const;

  Handle handle_;
  std::string where_;  ///< "FILE: /dataset", for messages
  std::uint64_t rows_ = 0, width_ = 1;
  Type type_ = Type::u8;
};

struct DatasetOptions {
  std::uint64_t width = 1;  ///< elements per row; at least 1
  std::uint64_t chunk_rows = 2048;
  bool compress = false;  ///< shuffle and deflate, level 1
};

class File {
 public:
  File() = default;
  /// Overwrites. Throws: IoError.
  static File create(const std::string& path);
  /// Read only. Throws: IoError when it cannot be read, FormatError when it is no (complete) HDF5 file.
  static File open(const std::string& path);

  const std::string& path() const noexcept { return path_; }

  void create_group(const std::string& name);
  Dataset create_dataset(const std::string& name, Type type, const DatasetOptions& options);
  /// Throws: FormatError unless it exists, with this type and width.
  Dataset open_dataset(const std::string& name, Type type, std::uint64_t width) const;
  bool has(const std::string& name) const;

  /// Attributes of the root ("/") or of a group.
  void set_attribute(const std::string& object, const std::string& name, std::uint64_t value);
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);
  void set_attribute(const std::string& object, const std::string& name,
                     const std::vector<std::string>& values);
  std::uint64_t integer_attribute(const std::string& object, const std::string& name) const;
  std::string text_attribute(const std::string& object, const std::string& name) const;

  /// Writes everything out and closes. Every Dataset of the file must be gone before. Throws: IoError.
  void close();

 private:
  Handle handle_;
  std::string path_;
};

}  // namespace hf::h5
