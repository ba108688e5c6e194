#include "io/text_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using test::gzip;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> lines_of(std::unique_ptr<ByteSource> bytes, std::uint64_t max_line_bytes = 1 << 20) {
  LineReader reader(std::move(bytes), max_line_bytes);
  std::vector<std::string> lines;
  Line line;
  while (reader.next(line)) {
    lines.push_back(line.too_long ? "<too long>" : std::string(line.text));
    EXPECT_EQ(line.number, lines.size());
  }
  EXPECT_FALSE(reader.next(line)) << "the end stays the end";
  return lines;
}
std::vector<std::string> lines_of(std::string_view text, std::uint64_t max_line_bytes = 1 << 20) {
  return lines_of(memory_bytes(text), max_line_bytes);
}

/// One byte per call, as a pipe may do.
class Drip final : public ByteSource {
 public:
  explicit Drip(std::string_view text) : inner_(memory_bytes(text)) {}
  std::size_t read(char* out, std::size_t n) override {
    return inner_->read(out, std::min<std::size_t>(n, 1));
  }

 private:
  std::unique_ptr<ByteSource> inner_;
};

template <class F>
std::string format_error(F&& f) {
  try {
    f();
  } catch (const FormatError& e) {
    return e.what();
  }
  return "no FormatError";
}

TEST(LineReader, LineEnds) {
  EXPECT_THAT(lines_of("a\nb\r\n\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of(""), ElementsAre());
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of("a\rb\n\r\r\n"), ElementsAre("a\rb", "\r"));
}

TEST(LineReader, ByteOrderMark) {
  EXPECT_THAT(lines_of("\xEF\xBB\xBFx\ny"), ElementsAre("x", "y"));
  EXPECT_THAT(lines_of(std::make_unique<Drip>("\xEF\xBB\xBFx\ny")), ElementsAre("x", "y"));
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"), ElementsAre());
  EXPECT_THAT(lines_of("x\n\xEF\xBB\xBFy"), ElementsAre("x", "\xEF\xBB\xBFy"));
  EXPECT_THAT(lines_of("\xEF\xBB"), ElementsAre("\xEF\xBB"));
}

TEST(LineReader, NulBytesStay) {
  EXPECT_THAT(lines_of(std::string_view("a\0b\n\0", 5)),
              ElementsAre(std::string("a\0b", 3), std::string("\0", 1)));
}

TEST(LineReader, OffsetsAndNumbers) {
  const std::string long_line(3000, 'x');
  const std::string text = "\xEF\xBB\xBF" + std::string("ab\r\n") + long_line + "\nc\n";
  LineReader reader(memory_bytes(text), 100);
  Line line;
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.offset, 3u);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.offset, 7u);
  EXPECT_TRUE(line.too_long);
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line.offset, 7u + 3001u);
  EXPECT_EQ(line.number, 3u);
  EXPECT_EQ(line.text, "c");
}

TEST(LineReader, LongLines) {
  const std::string ten_mb(10u << 20, 'x');
  const std::string text = "a\n" + ten_mb + "\nb\n" + ten_mb;
  const auto whole = lines_of(text, 16u << 20);
  ASSERT_EQ(whole.size(), 4u);
  EXPECT_EQ(whole[1], ten_mb);
  EXPECT_EQ(whole[3], ten_mb);
  EXPECT_THAT(lines_of(text, 1u << 20), ElementsAre("a", "<too long>", "b", "<too long>"));
}

TEST(LineReader, LimitIsExact) {
  EXPECT_THAT(lines_of("abc\nabcd\nabc\r\nabcd\r\nabc", 3),
              ElementsAre("abc", "<too long>", "abc", "<too long>", "abc"));
  EXPECT_THAT(lines_of(std::make_unique<Drip>("abc\nabcdefgh\nabc\r\nabcd"), 3),
              ElementsAre("abc", "<too long>", "abc", "<too long>"));
}

TEST(LineReader, BlockBordersDoNotMatter) {
  std::string text;
  std::vector<std::string> expected;
  for (int i = 0; i < 60000; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i % 37), 'a') + std::to_string(i));
    text += expected.back() + (i % 3 == 0 ? "\r\n" : "\n");
  }
  EXPECT_EQ(lines_of(text), expected);
  EXPECT_EQ(lines_of(inflate_bytes(memory_bytes(gzip(text)), "x")).size(), 0u + lines_of(text).size());
}

TEST(OpenBytes, PlainAndGzipByContent) {
  const TempDir dir;
  EXPECT_THAT(lines_of(open_bytes(dir.write("a.txt", "x\ny\n"))), ElementsAre("x", "y"));
  EXPECT_THAT(lines_of(open_bytes(dir.write("a.gz", gzip("x\ny\n")))), ElementsAre("x", "y"));
  EXPECT_THAT(lines_of(open_bytes(dir.write("gzip_without_suffix", gzip("x\ny\n")))), ElementsAre("x", "y"));
  EXPECT_THAT(lines_of(open_bytes(dir.write("one_byte", "x"))), ElementsAre("x"));
  EXPECT_THAT(lines_of(open_bytes(dir.write("empty", ""))), ElementsAre());
}

TEST(OpenBytes, GzipMembersAndPadding) {
  const TempDir dir;
  const auto two = gzip("x\ny") + gzip("z\n") + gzip("") + gzip("w");
  EXPECT_THAT(lines_of(open_bytes(dir.write("two.gz", two))), ElementsAre("x", "yz", "w"));
  EXPECT_THAT(lines_of(open_bytes(dir.write("padded.gz", two + std::string(1000, '\0')))),
              ElementsAre("x", "yz", "w"));
  const auto name = dir.write("garbage.gz", gzip("x\n") + "garbage");
  EXPECT_THAT(format_error([&] { lines_of(open_bytes(name)); }),
              HasSubstr("garbage.gz: bytes that are not gzip"));
  const auto after_padding = dir.write("pad_garbage.gz", gzip("x\n") + std::string(3, '\0') + gzip("y"));
  EXPECT_THAT(format_error([&] { lines_of(open_bytes(after_padding)); }), HasSubstr("not gzip"));
}

TEST(OpenBytes, DamagedGzip) {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919L) + "\n";
  const auto whole = gzip(text);
  // Wherever the file is cut, in the header, the data or the trailer: an error that names the file, never
  // fewer lines.
  for (const std::size_t cut :
       {std::size_t{2}, std::size_t{9}, whole.size() / 2, whole.size() - 8, whole.size() - 1}) {
    const auto name = dir.write("cut.gz", std::string_view(whole).substr(0, cut));
    EXPECT_THAT(format_error([&] { lines_of(open_bytes(name)); }), HasSubstr("cut.gz: truncated gzip"))
        << cut;
  }
  auto flipped = whole;
  flipped[flipped.size() - 6] ^= 1;  // CRC
  const auto name = dir.write("crc.gz", flipped);
  EXPECT_THAT(format_error([&] { lines_of(open_bytes(name)); }), HasSubstr("crc.gz: damaged gzip"));
  const auto empty = dir.write("empty.gz", "");
  EXPECT_THAT(format_error([&] { lines_of(open_bytes(empty)); }), HasSubstr("not those of a gzip file"));
  const auto plain = dir.write("plain.gz", "0\t1\n");
  EXPECT_THAT(format_error([&] { lines_of(open_bytes(plain)); }), HasSubstr("plain.gz: named .gz"));
}

TEST(OpenBytes, Refused) {
  const TempDir dir;
  EXPECT_THROW(open_bytes(dir.path("absent")), IoError);
  EXPECT_THROW(open_bytes(dir.path()), IoError) << "a directory cannot be read as a file";
}

}  // namespace
}  // namespace hf
