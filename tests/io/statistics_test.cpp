#include "io/statistics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "io_test_support.hpp"

namespace hf {
namespace {

using testing::HasSubstr;

std::string load_error(const test::TempDir& dir, const std::string& text) {
  try {
    load_statistics(dir.write("bad.json", text));
  } catch (const FormatError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Statistics, RoundTripWithAnyBytes) {
  const test::TempDir dir;
  Statistics s;
  s.numeric["age"] = {38.581646760000001, 13.640432553581146};
  s.numeric["tiny"] = {-1e-300, 5e-324};
  std::string every_byte;
  for (int b = 0; b < 256; ++b) every_byte += static_cast<char>(b);
  s.vocabularies["job"] = {"plain",       "",         "back\\slash", "\\x41", "\xff\xfe",
                           "caf\xc3\xa9", "cut \xc3", every_byte};
  s.vocabularies["empty"] = {};
  save_statistics(s, dir.path("statistics.json"));
  EXPECT_EQ(load_statistics(dir.path("statistics.json")), s);
  EXPECT_FALSE(std::filesystem::exists(dir.path("statistics.json.tmp")));
}

TEST(Statistics, EscapedBytes) {
  EXPECT_EQ(escape_bytes("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(escape_bytes("a\xffz"), "a\\xffz");
  EXPECT_EQ(escape_bytes("\\xff"), "\\\\xff");
  // Overlong, surrogate, above U+10FFFF: no UTF-8 although the pattern of bits is.
  for (const std::string bad :
       {"\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80"}) {
    EXPECT_EQ(escape_bytes(bad).substr(0, 2), "\\x") << bad;
    EXPECT_EQ(unescape_bytes(escape_bytes(bad)), bad);
  }
  for (const char* wrong : {"\\", "\\q", "\\x1", "\\xGG", "\\xFF"})
    EXPECT_THROW(unescape_bytes(wrong), FormatError) << wrong;
}

TEST(Statistics, ErrorsNameFileAndKey) {
  const test::TempDir dir;
  EXPECT_THROW(load_statistics(dir.path("none.json")), IoError);
  EXPECT_THROW(load_statistics(dir.path("")), IoError);
  const std::string head = R"({"format":"hyperframes-statistics","format_version":1,)";
  const struct {
    std::string text, expected;
  } cases[] = {
      {"", "not JSON"},
      {"{\"a\": \xff}", "not JSON"},
      {"[]", "expected an object, found array"},
      {"{}", "key \"format\" is missing"},
      {R"({"format":"other"})", "format: expected \"hyperframes-statistics\", found \"other\""},
      {R"({"format":"hyperframes-statistics","format_version":2})", "format_version: expected 1, found 2"},
      {head + R"("vocabularies":{}})", "key \"numeric\" is missing"},
      {head + R"("numeric":{}})", "key \"vocabularies\" is missing"},
      {head + R"("numeric":[],"vocabularies":{}})", "numeric: expected an object"},
      {head + R"("numeric":{"a":{"mean":1}},"vocabularies":{}})", "numeric.a: key \"stddev\" is missing"},
      {head + R"("numeric":{"a":{"mean":"x","stddev":1}},"vocabularies":{}})",
       "numeric.a.mean: expected a number, found string"},
      {head + R"("numeric":{"a":{"mean":0,"stddev":0}},"vocabularies":{}})",
       "numeric.a.stddev: expected a number above 0"},
      {head + R"("numeric":{},"vocabularies":{"c":5}})", "vocabularies.c: expected a list, found number"},
      {head + R"("numeric":{},"vocabularies":{"c":["x",5]}})",
       "vocabularies.c[1]: expected a text, found number"},
      {head + R"("numeric":{},"vocabularies":{"c":["x","y","x"]}})", "vocabularies.c[2]: \"x\" occurs twice"},
      {head + R"("numeric":{},"vocabularies":{"c":["\\q"]}})", "after a backslash"},
  };
  for (const auto& c : cases) {
    const std::string error = load_error(dir, c.text);
    EXPECT_THAT(error, HasSubstr(c.expected)) << c.text;
    EXPECT_THAT(error, HasSubstr("bad.json")) << c.text;
  }
}

}  // namespace
}  // namespace hf
