#include "io/dataset.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "io/inputs.hpp"
#include "io/packed.hpp"
#include "io/prefetch.hpp"
#include "io/split.hpp"
#include "io/statistics.hpp"
#include "io/text_stream.hpp"

namespace hf {

const char* to_string(Split split) noexcept {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      return "test";
  }
  return "?";
}

bool has_split(const Config& config, Split split) noexcept {
  return !split_inputs(config.data, split).names.empty();
}

DataDescription describe_data(const Config& config) {
  const DataConfig& data = config.data;
  std::vector<std::string> problems, files;
  for (const auto& [key, names] : {std::pair("train", &data.train), std::pair("validation", &data.validation),
                                   std::pair("test", &data.test)}) {
    std::vector<std::string> found;
    for (auto& file : expand_inputs(*names, found)) files.push_back(std::move(file));
    for (const auto& problem : found) problems.push_back(std::string("data.") + key + ": " + problem);
  }

  Statistics statistics;
  if (data.format != DataFormat::packed && !data.statistics.empty()) {
    try {
      statistics = load_statistics(data.statistics);
    } catch (const Error& e) {
      problems.push_back(std::string("data.statistics: ") + e.what());
    }
  }
  if (!problems.empty()) {
    std::string text = "input files:";
    for (const auto& p : problems) text += "\n  " + p;
    throw IoError(text);
  }
  if (data.format == DataFormat::packed) return describe_packed(config, files);

  DataDescription description;
  for (const auto& f : config.features.categorical) {
    if (f.encoding != CategoryEncoding::vocabulary) continue;
    const auto found = statistics.vocabularies.find(f.name);
    if (found != statistics.vocabularies.end())
      description.vocabulary_sizes.emplace_back(f.name, found->second.size() + 2);
  }
  return description;
}

std::unique_ptr<BatchStream> open_stream(const Config& config, const Schema& schema,
                                         const StreamOptions& options) {
  const SplitInputs inputs = split_inputs(config.data, options.split);
  if (inputs.names.empty())
    throw ConfigError(std::string("data: no input for the ") + to_string(options.split) + " split");
  auto files = expand_inputs(inputs.names);
  std::unique_ptr<BatchStream> stream;
  if (config.data.format == DataFormat::packed) {
    stream = open_packed_stream(config, schema, options, std::move(files));
  } else {
    const Statistics statistics =
        config.data.statistics.empty() ? Statistics{} : load_statistics(config.data.statistics);
    stream = open_text_stream(config, schema, statistics, options, std::move(files), inputs.filter);
  }
  return prefetch(std::move(stream), config.data.prefetch_batches);
}

}  // namespace hf
