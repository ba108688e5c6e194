// CSV lines through reader and encoder: header or names, quotes, several delimiters, trimmed or not.
#include "fuzz_support.hpp"

namespace {

using namespace hf;

Config make_config(unsigned options) {
  Config config;
  config.data.format = DataFormat::csv;
  config.data.max_line_bytes = 1000;
  auto& csv = config.data.csv;
  csv.header = (options & 1) != 0;
  if (!csv.header) csv.columns = {"y", "n", "c", "t", "hour"};
  csv.trim = (options & 2) != 0;
  csv.delimiter = (options & 4) != 0 ? "tab" : ",";
  csv.missing = {"", "?"};
  csv.label = "y";
  if ((options & 8) != 0) csv.negative.clear();
  config.data.split.by = SplitBy::column;
  config.data.split.column = "hour";
  config.features.numeric = {test::numeric("n", NumericTransform::log1p)};
  auto tags = test::category("t", CategoryEncoding::identity, 50);
  tags.separator = "|";
  auto hour = test::category("hour", CategoryEncoding::identity, 24);
  hour.derive = "hour_of_day";
  config.features.categorical = {test::category("c"), tags, hour};
  return config;
}

std::vector<std::string> seeds() {
  const std::string rows = "1, 2.5,\"a \"\"b\"\", c\",1|2||49,14102107\n0,?,x,,14102123\r\n";
  std::string tabs = rows;
  for (char& c : tabs)
    if (c == ',') c = '\t';
  return {"\x10" + rows,
          "\x03\xEF\xBB\xBF"
          "hour,n,\"t\",y,c\n14102107,1,3,1,z\n",
          "\x16" + tabs, "\x0a" + rows};
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  static const auto start = seeds();
  return fuzz::mutate(data, size, max_size, seed, start);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::input_of(data, size);
  const Config config = make_config(input.options);
  fuzz::read_all(config, test::schema_of(config), input.text, (input.options & 16) != 0);
  return 0;
}
