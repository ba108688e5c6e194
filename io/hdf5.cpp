#include "io/hdf5.hpp"

#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "core/error.hpp"

namespace hf::h5 {
namespace {

static_assert(sizeof(hid_t) == sizeof(std::int64_t));

/// Held around every library call. The one process-wide object of this layer, because the library itself is
/// one.
class LibraryLock {
 public:
  LibraryLock() : guard_(mutex()) {
    // The error stack, and whether it prints, belongs to the calling thread.
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex m;
    return m;
  }
  std::lock_guard<std::recursive_mutex> guard_;
};

/// The innermost messages of the error stack: what really went wrong.
std::string library_reason() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned n, const H5E_error2_t* e, void* out) -> herr_t {
        auto& t = *static_cast<std::string*>(out);
        if (n < 3 && e->desc != nullptr && *e->desc != '\0')
          t += (t.empty() ? "" : "; ") + std::string(e->desc);
        return 0;
      },
      &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "HDF5 gave no reason" : text;
}

enum class Blame { system, format };

[[noreturn]] void fail(Blame blame, const std::string& where, const std::string& what) {
  const std::string text = where + ": " + what + ": " + library_reason();
  if (blame == Blame::system) throw IoError(text);
  throw FormatError(text);
}

/// Checks one call: its result must not be negative. Gives the result.
#define HF_H5(call, blame, where, what)                \
  [&] {                                                \
    const auto hf_result = (call);                     \
    if (hf_result < 0) fail((blame), (where), (what)); \
    return hf_result;                                  \
  }()

template <herr_t (*Close)(hid_t)>
int close_with(std::int64_t id) {
  return Close(id);
}
template <herr_t (*Close)(hid_t)>
Handle own(hid_t id) {
  return Handle(id, &close_with<Close>);
}

hid_t file_type(Type t) {
  switch (t) {
    case Type::u8:
      return H5T_STD_U8LE;
    case Type::u32:
      return H5T_STD_U32LE;
    case Type::u64:
      return H5T_STD_U64LE;
    case Type::f32:
      return H5T_IEEE_F32LE;
  }
  return H5I_INVALID_HID;
}

hid_t memory_type(Type t) {
  switch (t) {
    case Type::u8:
      return H5T_NATIVE_UINT8;
    case Type::u32:
      return H5T_NATIVE_UINT32;
    case Type::u64:
      return H5T_NATIVE_UINT64;
    case Type::f32:
      return H5T_NATIVE_FLOAT;
  }
  return H5I_INVALID_HID;
}

std::size_t size_of(Type t) {
  switch (t) {
    case Type::u8:
      return 1;
    case Type::u32:
    case Type::f32:
      return 4;
    case Type::u64:
      return 8;
  }
  return 0;
}

/// The chunk cache of a dataset must hold the few chunks that a batch touches, or each is unpacked again and
/// again.
Handle access_list(std::uint64_t chunk_bytes, const std::string& where) {
  Handle list =
      own<H5Pclose>(HF_H5(H5Pcreate(H5P_DATASET_ACCESS), Blame::system, where, "cannot create properties"));
  const auto cache =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(4 * chunk_bytes, 1u << 20, 64u << 20));
  HF_H5(H5Pset_chunk_cache(list.get(), 521, cache, 1.0), Blame::system, where, "cannot set the chunk cache");
  return list;
}

Handle text_type(std::size_t length, const std::string& where) {
  Handle type = own<H5Tclose>(HF_H5(H5Tcopy(H5T_C_S1), Blame::system, where, "cannot make a text type"));
  HF_H5(H5Tset_size(type.get(), std::max<std::size_t>(length, 1)), Blame::system, where,
        "cannot make a text type");
  HF_H5(H5Tset_cset(type.get(), H5T_CSET_UTF8), Blame::system, where, "cannot make a text type");
  HF_H5(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), Blame::system, where, "cannot make a text type");
  return type;
}

void write_attribute(const Handle& file, const std::string& path, const std::string& object,
                     const std::string& name, hid_t type, hid_t memory, hid_t space, const void* data) {
  const std::string where = path + ": attribute " + object + "@" + name;
  Handle attribute = own<H5Aclose>(HF_H5(H5Acreate_by_name(file.get(), object.c_str(), name.c_str(), type,
                                                           space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                                         Blame::system, where, "cannot create"));
  HF_H5(H5Awrite(attribute.get(), memory, data), Blame::system, where, "cannot write");
}

Handle open_attribute(const Handle& file, const std::string& object, const std::string& name,
                      const std::string& where) {
  return own<H5Aclose>(
      HF_H5(H5Aopen_by_name(file.get(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT),
            Blame::format, where, "is missing"));
}

}  // namespace

const char* to_string(Type type) noexcept {
  switch (type) {
    case Type::u8:
      return "u8";
    case Type::u32:
      return "u32";
    case Type::u64:
      return "u64";
    case Type::f32:
      return "f32";
  }
  return "?";
}

int Handle::reset() noexcept {
  if (id_ < 0) return 0;
  const LibraryLock lock;
  return close_(std::exchange(id_, -1));
}

// ------------------------------------------------------------------------------------------------- dataset

void Dataset::append_raw(const void* data, std::uint64_t rows, Type type) {
  HF_CHECK(type == type_, where_ + ": append with another type");
  if (rows == 0) return;
  const LibraryLock lock;
  const hsize_t size[2] = {rows_ + rows, width_}, start[2] = {rows_, 0}, count[2] = {rows, width_};
  const int rank = width_ == 1 ? 1 : 2;
  HF_H5(H5Dset_extent(handle_.get(), size), Blame::system, where_, "cannot extend");
  Handle in_file = own<H5Sclose>(HF_H5(H5Dget_space(handle_.get()), Blame::system, where_, "cannot write"));
  HF_H5(H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), Blame::system,
        where_, "cannot select rows");
  Handle in_memory =
      own<H5Sclose>(HF_H5(H5Screate_simple(rank, count, nullptr), Blame::system, where_, "cannot write"));
  HF_H5(H5Dwrite(handle_.get(), memory_type(type), in_memory.get(), in_file.get(), H5P_DEFAULT, data),
        Blame::system, where_, "cannot write");
  rows_ += rows;
}

void Dataset::read_raw(std::uint64_t first, std::uint64_t rows, void* out, Type type) const {
  HF_CHECK(type == type_ || (type == Type::u64 && type_ == Type::u32), where_ + ": read as another type");
  if (rows == 0) return;
  if (first > rows_ || rows > rows_ - first)
    throw FormatError(where_ + ": expected at least " + std::to_string(first + rows) + " rows, found " +
                      std::to_string(rows_));
  const LibraryLock lock;
  const hsize_t start[2] = {first, 0}, count[2] = {rows, width_};
  const int rank = width_ == 1 ? 1 : 2;
  Handle in_file = own<H5Sclose>(HF_H5(H5Dget_space(handle_.get()), Blame::format, where_, "cannot read"));
  HF_H5(H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start, nullptr, count, nullptr), Blame::format,
        where_, "cannot select rows");
  Handle in_memory =
      own<H5Sclose>(HF_H5(H5Screate_simple(rank, count, nullptr), Blame::format, where_, "cannot read"));
  HF_H5(H5Dread(handle_.get(), memory_type(type), in_memory.get(), in_file.get(), H5P_DEFAULT, out),
        Blame::format, where_,
        "cannot read rows " + std::to_string(first) + " … " + std::to_string(first + rows - 1));
}

// ---------------------------------------------------------------------------------------------------- file

File File::create(const std::string& path) {
  const LibraryLock lock;
  Handle access = own<H5Pclose>(HF_H5(H5Pcreate(H5P_FILE_ACCESS), Blame::system, path, "cannot create"));
  // The format of 1.10: checksummed metadata, readable by every library since.
  HF_H5(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110), Blame::system, path,
        "cannot create");
  HF_H5(H5Pset_fclose_degree(access.get(), H5F_CLOSE_SEMI), Blame::system, path, "cannot create");
  File file;
  file.path_ = path;
  file.handle_ = own<H5Fclose>(HF_H5(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()),
                                     Blame::system, path, "cannot create"));
  return file;
}

File File::open(const std::string& path) {
  // The system's own word first: HDF5 buries it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw IoError(path + ": cannot open: " + std::strerror(errno));
  ::close(fd);
  const LibraryLock lock;
  Handle access = own<H5Pclose>(HF_H5(H5Pcreate(H5P_FILE_ACCESS), Blame::system, path, "cannot open"));
  // Locks fail on some network file systems; complete files are never written again.
  HF_H5(H5Pset_file_locking(access.get(), false, true), Blame::system, path, "cannot open");
  HF_H5(H5Pset_fclose_degree(access.get(), H5F_CLOSE_SEMI), Blame::system, path, "cannot open");
  File file;
  file.path_ = path;
  file.handle_ = own<H5Fclose>(HF_H5(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), Blame::format, path,
                                     "expected a complete HDF5 file"));
  return file;
}

void File::create_group(const std::string& name) {
  const LibraryLock lock;
  own<H5Gclose>(HF_H5(H5Gcreate2(handle_.get(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                      Blame::system, path_ + ": " + name, "cannot create the group"));
}

Dataset File::create_dataset(const std::string& name, Type type, const DatasetOptions& options) {
  HF_CHECK(options.width >= 1 && options.chunk_rows >= 1, "datasets with columns and rows");
  const LibraryLock lock;
  Dataset d;
  d.where_ = path_ + ": " + name;
  d.width_ = options.width;
  d.type_ = type;
  const int rank = d.width_ == 1 ? 1 : 2;
  const hsize_t size[2] = {0, d.width_}, limit[2] = {H5S_UNLIMITED, d.width_},
                chunk[2] = {options.chunk_rows, d.width_};
  Handle space =
      own<H5Sclose>(HF_H5(H5Screate_simple(rank, size, limit), Blame::system, d.where_, "cannot create"));
  Handle list = own<H5Pclose>(HF_H5(H5Pcreate(H5P_DATASET_CREATE), Blame::system, d.where_, "cannot create"));
  HF_H5(H5Pset_chunk(list.get(), rank, chunk), Blame::system, d.where_, "cannot create");
  if (options.compress) {
    HF_H5(H5Pset_shuffle(list.get()), Blame::system, d.where_, "cannot create");
    HF_H5(H5Pset_deflate(list.get(), 1), Blame::system, d.where_, "cannot create");
  }
  HF_H5(H5Pset_fletcher32(list.get()), Blame::system, d.where_, "cannot create");
  const Handle access = access_list(options.chunk_rows * d.width_ * size_of(type), d.where_);
  d.handle_ = own<H5Dclose>(HF_H5(H5Dcreate2(handle_.get(), name.c_str(), file_type(type), space.get(),
                                             H5P_DEFAULT, list.get(), access.get()),
                                  Blame::system, d.where_, "cannot create"));
  return d;
}

Dataset File::open_dataset(const std::string& name, Type type, std::uint64_t width) const {
  const LibraryLock lock;
  Dataset d;
  d.where_ = path_ + ": " + name;
  // Opened twice: the size of a chunk, which the cache depends on, is known only after the first time.
  std::uint64_t chunk_bytes = 1;
  {
    Handle first = own<H5Dclose>(HF_H5(H5Dopen2(handle_.get(), name.c_str(), H5P_DEFAULT), Blame::format,
                                       d.where_, "is missing or damaged"));
    Handle list =
        own<H5Pclose>(HF_H5(H5Dget_create_plist(first.get()), Blame::format, d.where_, "is damaged"));
    hsize_t chunk[2] = {1, 1};
    if (H5Pget_layout(list.get()) == H5D_CHUNKED)
      HF_H5(H5Pget_chunk(list.get(), 2, chunk), Blame::format, d.where_, "is damaged");
    chunk_bytes = chunk[0] * chunk[1] * size_of(type);
  }
  const Handle access = access_list(chunk_bytes, d.where_);
  d.handle_ = own<H5Dclose>(HF_H5(H5Dopen2(handle_.get(), name.c_str(), access.get()), Blame::format,
                                  d.where_, "is missing or damaged"));

  Handle stored = own<H5Tclose>(HF_H5(H5Dget_type(d.handle_.get()), Blame::format, d.where_, "has no type"));
  if (H5Tequal(stored.get(), file_type(type)) <= 0)
    throw FormatError(d.where_ + ": expected elements of type " + to_string(type) + ", found another type");
  d.type_ = type;
  Handle space = own<H5Sclose>(HF_H5(H5Dget_space(d.handle_.get()), Blame::format, d.where_, "has no shape"));
  const int rank = HF_H5(H5Sget_simple_extent_ndims(space.get()), Blame::format, d.where_, "has no shape");
  const int expected_rank = width == 1 ? 1 : 2;
  if (rank != expected_rank)
    throw FormatError(d.where_ + ": expected " + std::to_string(expected_rank) + " dimensions, found " +
                      std::to_string(rank));
  hsize_t size[2] = {0, 1};
  HF_H5(H5Sget_simple_extent_dims(space.get(), size, nullptr), Blame::format, d.where_, "has no shape");
  if (size[1] != width)
    throw FormatError(d.where_ + ": expected " + std::to_string(width) + " columns, found " +
                      std::to_string(size[1]));
  d.rows_ = size[0];
  d.width_ = width;
  return d;
}

bool File::has(const std::string& name) const {
  const LibraryLock lock;
  const htri_t found = H5Lexists(handle_.get(), name.c_str(), H5P_DEFAULT);
  H5Eclear2(H5E_DEFAULT);
  return found > 0;
}

void File::set_attribute(const std::string& object, const std::string& name, std::uint64_t value) {
  const LibraryLock lock;
  Handle space =
      own<H5Sclose>(HF_H5(H5Screate(H5S_SCALAR), Blame::system, path_, "cannot create an attribute"));
  write_attribute(handle_, path_, object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, space.get(), &value);
}

void File::set_attribute(const std::string& object, const std::string& name, const std::string& value) {
  const LibraryLock lock;
  Handle space =
      own<H5Sclose>(HF_H5(H5Screate(H5S_SCALAR), Blame::system, path_, "cannot create an attribute"));
  const Handle type = text_type(value.size(), path_);
  // An empty text has one padding byte, which std::string keeps behind its end.
  write_attribute(handle_, path_, object, name, type.get(), type.get(), space.get(), value.c_str());
}

void File::set_attribute(const std::string& object, const std::string& name,
                         const std::vector<std::string>& values) {
  const LibraryLock lock;
  const hsize_t count = values.size();
  Handle space = own<H5Sclose>(count == 0 ? H5Screate(H5S_NULL) : H5Screate_simple(1, &count, nullptr));
  std::size_t longest = 1;
  for (const auto& v : values) longest = std::max(longest, v.size());
  std::string packed(longest * values.size(), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) values[i].copy(&packed[i * longest], longest);
  const Handle type = text_type(longest, path_);
  write_attribute(handle_, path_, object, name, type.get(), type.get(), space.get(), packed.data());
}

std::uint64_t File::integer_attribute(const std::string& object, const std::string& name) const {
  const LibraryLock lock;
  const std::string where = path_ + ": attribute " + object + "@" + name;
  Handle attribute = open_attribute(handle_, object, name, where);
  Handle type = own<H5Tclose>(HF_H5(H5Aget_type(attribute.get()), Blame::format, where, "has no type"));
  Handle space = own<H5Sclose>(HF_H5(H5Aget_space(attribute.get()), Blame::format, where, "has no shape"));
  if (H5Tget_class(type.get()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.get()) != 1)
    throw FormatError(where + ": expected one integer");
  std::uint64_t value = 0;
  HF_H5(H5Aread(attribute.get(), H5T_NATIVE_UINT64, &value), Blame::format, where, "cannot read");
  return value;
}

std::string File::text_attribute(const std::string& object, const std::string& name) const {
  const LibraryLock lock;
  const std::string where = path_ + ": attribute " + object + "@" + name;
  Handle attribute = open_attribute(handle_, object, name, where);
  Handle type = own<H5Tclose>(HF_H5(H5Aget_type(attribute.get()), Blame::format, where, "has no type"));
  Handle space = own<H5Sclose>(HF_H5(H5Aget_space(attribute.get()), Blame::format, where, "has no shape"));
  const std::size_t size = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 || size == 0 ||
      size > (1u << 28) || H5Sget_simple_extent_npoints(space.get()) != 1)
    throw FormatError(where + ": expected one text of fixed length");
  std::string value(size, '\0');
  HF_H5(H5Aread(attribute.get(), type.get(), value.data()), Blame::format, where, "cannot read");
  value.resize(value.find_last_not_of('\0') + 1);
  return value;
}

void File::close() {
  const LibraryLock lock;
  if (handle_.get() >= 0) {
    HF_H5(H5Fflush(handle_.get(), H5F_SCOPE_LOCAL), Blame::system, path_, "cannot write");
    if (handle_.reset() < 0) fail(Blame::system, path_, "cannot close");
  }
}

}  // namespace hf::h5
