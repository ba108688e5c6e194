// Damaged gzip through the line reader: lines or FormatError, never more memory than the limit allows.
#include "fuzz_support.hpp"
#include "io/text_file.hpp"

namespace {

std::vector<std::string> seeds() {
  const std::string zeros(5000, '0');
  return {hf::test::gzip("a\nb\r\n"), hf::test::gzip("x\n") + hf::test::gzip("") + std::string(4, '\0'),
          hf::test::gzip("\xEF\xBB\xBF" + zeros + "\nshort\n" + zeros)};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static const auto start = seeds();
  return hf::fuzz::mutate(data, size, max_size, seed, start);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::uint64_t kLimit = 1000;
  try {
    hf::LineReader lines(hf::inflate_bytes(hf::memory_bytes(bytes), "fuzz"), kLimit);
    hf::Line line;
    std::uint64_t number = 0, offset = 0;
    while (lines.next(line)) {
      hf::fuzz::require(line.number == ++number, "numbers");
      hf::fuzz::require(number == 1 || line.offset > offset, "offsets");
      offset = line.offset;
      hf::fuzz::require(line.text.size() <= kLimit, "limit");
      hf::fuzz::require(line.text.find('\n') == std::string_view::npos, "one line");
    }
  } catch (const hf::FormatError&) {
  }
  return 0;
}
