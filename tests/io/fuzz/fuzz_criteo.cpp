// Criteo lines through reader and encoder.
#include "fuzz_support.hpp"

namespace {

using namespace hf;

Config make_config() {
  Config config = test::criteo_config();
  config.data.max_line_bytes = 1000;
  config.data.split.by = SplitBy::column;
  config.data.split.column = "C3";
  auto& numeric = config.features.numeric;
  numeric[1].transform = NumericTransform::raw;
  numeric[1].missing_indicator = true;
  numeric[2].transform = NumericTransform::bucketize;
  numeric[2].boundaries = {-1.0, 3.0, 10.0};
  auto& categorical = config.features.categorical;
  categorical[1].encoding = CategoryEncoding::identity;
  categorical[2].separator = "c";
  categorical[3].derive = "day_of_week";
  return config;
}

std::vector<std::string> seeds() {
  const std::string good = test::criteo_line("1", "-3", "68fd1e64") + "\r\n";
  std::string typed = "0" + std::string(14, '\t');
  for (int i = 0; i < 26; ++i)
    typed += (i == 0 ? "" : "\t") + std::string(i == 1 ? "17" : i == 3 ? "14102123" : "");
  return {"\1" + good + typed + "\n", std::string("\0", 1) + good.substr(2),
          "\2" + std::string(39, '\t') + "\n" + good};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static const auto start = seeds();
  return fuzz::mutate(data, size, max_size, seed, start);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Config config = make_config();
  static const Schema schema = test::schema_of(config);
  const auto input = fuzz::input_of(data, size);
  fuzz::read_all(config, schema, input.text, (input.options & 1) != 0);
  return 0;
}
