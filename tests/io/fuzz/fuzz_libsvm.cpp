// libsvm and libFM lines through reader and encoder.
#include "fuzz_support.hpp"

namespace {

using namespace hf;

Config make_config(unsigned options) {
  Config config;
  config.data.format = (options & 2) != 0 ? DataFormat::libfm : DataFormat::libsvm;
  config.data.max_line_bytes = 1000;
  config.embedding.wrap_ids = (options & 4) != 0;
  config.features.categorical = {
      test::category("x", (options & 8) != 0 ? CategoryEncoding::hash : CategoryEncoding::identity, 1000)};
  return config;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static const std::vector<std::string> start = {"\1+1 1:0.5 7:-2e3 999:1\n-1 # nothing\n0 5:+1\r\n",
                                                 "\4"
                                                 "1:1 2:2\n",
                                                 "\x0b"
                                                 "1 18446744073709551615:1\n# comment\n"};
  return fuzz::mutate(data, size, max_size, seed, start);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::input_of(data, size);
  const Config config = make_config(input.options);
  fuzz::read_all(config, test::schema_of(config), input.text, (input.options & 1) != 0);
  return 0;
}
