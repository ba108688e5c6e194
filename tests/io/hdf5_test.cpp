#include "io/hdf5.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf::h5 {
namespace {

using hf::test::TempDir;
using testing::HasSubstr;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Hdf5, DatasetsAndAttributesRoundTrip) {
  const TempDir dir;
  const std::string path = dir.path("a.h5");
  std::vector<float> wide(3000 * 3);
  std::iota(wide.begin(), wide.end(), 0.0F);
  std::vector<std::uint32_t> narrow(3000);
  std::iota(narrow.begin(), narrow.end(), 7U);
  {
    File file = File::create(path);
    file.create_group("/g");
    file.set_attribute("/", "number", 1ULL << 63);
    file.set_attribute("/g", "text", std::string("caf\xc3\xa9"));
    file.set_attribute("/g", "empty", std::string());
    file.set_attribute("/", "list", std::vector<std::string>{"a", "longer", ""});
    file.set_attribute("/", "long", std::string(200000, 'x'));  // more than an object header holds
    Dataset w = file.create_dataset("/g/wide", Type::f32, {3, 100, true});
    Dataset n = file.create_dataset("/narrow", Type::u32, {1, 128, false});
    w.append(wide.data(), 1);
    w.append(wide.data() + 3, 2999);
    n.append(narrow.data(), 0);
    n.append(narrow.data(), 3000);
    EXPECT_EQ(w.rows(), 3000u);
    w = Dataset();
    n = Dataset();
    file.close();
  }
  const File file = File::open(path);
  EXPECT_EQ(file.integer_attribute("/", "number"), 1ULL << 63);
  EXPECT_EQ(file.text_attribute("/g", "text"), "caf\xc3\xa9");
  EXPECT_EQ(file.text_attribute("/g", "empty"), "");
  EXPECT_EQ(file.text_attribute("/", "long"), std::string(200000, 'x'));
  EXPECT_TRUE(file.has("/narrow"));
  EXPECT_FALSE(file.has("/other"));
  std::vector<float> rows(200 * 3);
  file.open_dataset("/g/wide", Type::f32, 3).read(50, 200, rows.data());
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), wide.begin() + 150));
  std::vector<std::uint64_t> widened(10);
  const Dataset n = file.open_dataset("/narrow", Type::u32, 1);
  n.read(2990, 10, widened.data());
  EXPECT_EQ(widened.back(), 3006u);
  n.read(3000, 0, widened.data());
  EXPECT_THAT(error_of([&] { n.read(2991, 10, widened.data()); }),
              HasSubstr("expected at least 3001 rows, found 3000"));
  EXPECT_THROW(n.read(~0ULL, 2, widened.data()), FormatError);
}

TEST(Hdf5, ErrorsNameTheFileAndTheReason) {
  const TempDir dir;
  EXPECT_THROW(File::open(dir.path("none.h5")), IoError);
  EXPECT_THAT(error_of([&] { File::open(dir.path("none.h5")); }), HasSubstr("No such file"));
  EXPECT_THROW(File::create(dir.path("no/such/dir.h5")), IoError);
  EXPECT_THROW(File::open(dir.write("text.h5", "label,a,b\n")), FormatError);
  EXPECT_THROW(File::open(dir.write("empty.h5", "")), FormatError);
  EXPECT_THAT(error_of([&] { File::open(dir.path("text.h5")); }),
              testing::AllOf(HasSubstr("text.h5"), HasSubstr("file signature not found")));

  File file = File::create(dir.path("b.h5"));
  file.create_dataset("/d", Type::u64, {2, 16, false});
  file.set_attribute("/", "text", std::string("x"));
  file.close();
  const File again = File::open(dir.path("b.h5"));
  EXPECT_THAT(error_of([&] { again.open_dataset("/e", Type::u64, 2); }), HasSubstr("/e: is missing"));
  EXPECT_THAT(error_of([&] { again.open_dataset("/d", Type::f32, 2); }),
              HasSubstr("expected elements of type f32"));
  EXPECT_THAT(error_of([&] { again.open_dataset("/d", Type::u64, 3); }),
              HasSubstr("expected 3 columns, found 2"));
  EXPECT_THAT(error_of([&] { again.open_dataset("/d", Type::u64, 1); }),
              HasSubstr("expected 1 dimensions, found 2"));
  EXPECT_THAT(error_of([&] { again.integer_attribute("/", "text"); }), HasSubstr("expected one integer"));
  EXPECT_THAT(error_of([&] { again.integer_attribute("/", "none"); }), HasSubstr("@none: is missing"));
  EXPECT_THAT(error_of([&] { again.text_attribute("/x", "none"); }), HasSubstr("/x@none"));
}

TEST(Hdf5, SeveralThreadsReadDifferentFiles) {
  const TempDir dir;
  const auto work = [&](int k) {
    const std::string path = dir.path(std::to_string(k) + ".h5");
    std::vector<std::uint32_t> values(20000, static_cast<std::uint32_t>(k));
    File file = File::create(path);
    file.create_dataset("/v", Type::u32, {1, 256, true}).append(values.data(), values.size());
    file.close();
    const File again = File::open(path);
    const Dataset d = again.open_dataset("/v", Type::u32, 1);
    for (std::uint64_t first = 0; first < 20000; first += 1000) {
      std::vector<std::uint32_t> out(1000);
      d.read(first, 1000, out.data());
      if (out != std::vector<std::uint32_t>(1000, static_cast<std::uint32_t>(k))) ADD_FAILURE() << path;
    }
    EXPECT_THROW(File::open(dir.path("none")), IoError);
    EXPECT_THROW(again.open_dataset("/none", Type::u8, 1), FormatError);
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back(work, k);
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace hf::h5
