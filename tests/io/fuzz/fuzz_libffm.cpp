// libffm lines through reader and encoder.
#include "fuzz_support.hpp"

namespace {

using namespace hf;

Config make_config() {
  Config config;
  config.data.format = DataFormat::libffm;
  config.data.max_line_bytes = 1000;
  config.features.categorical = {test::category("user", CategoryEncoding::identity, 1000),
                                 test::category("item"),
                                 test::category("tags", CategoryEncoding::identity, 10)};
  return config;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static const std::vector<std::string> start = {
      "\1"
      "1 0:11:1 2:5:0.5 2:6:-0.5\r\n0 1:7:2 # comment\n",
      std::string("\0", 1) + "0:1:1 1:99999999:1e9\n-1 0:1000:1\n"};
  return fuzz::mutate(data, size, max_size, seed, start);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Config config = make_config();
  static const Schema schema = test::schema_of(config);
  const auto input = fuzz::input_of(data, size);
  fuzz::read_all(config, schema, input.text, (input.options & 1) != 0);
  return 0;
}
