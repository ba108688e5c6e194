#include "io/convert.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"
#include "core/schema.hpp"
#include "io/atomic_file.hpp"
#include "io/encoder.hpp"
#include "io/inputs.hpp"
#include "io/packed.hpp"
#include "io/row_reader.hpp"
#include "io/split.hpp"

namespace hf {
namespace {

constexpr std::uint32_t kBatchRows = 8192;
constexpr std::uint64_t kProgressRows = 1u << 16;

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};
using Counts = std::unordered_map<std::string, std::uint64_t, TextHash, std::equal_to<>>;

/// Mean and variance in one pass. Source: Welford, Note on a method for calculating corrected sums of
/// squares, 1962.
struct Moments {
  std::uint64_t n = 0;
  double mean = 0, squares = 0;
  void add(double x) noexcept {
    const double before = x - mean;
    mean += before / static_cast<double>(++n);
    squares += before * (x - mean);
  }
  NumericMoments result() const noexcept {
    const double deviation = n == 0 ? 0 : std::sqrt(squares / static_cast<double>(n));
    // A constant column stays constant whatever it is divided by.
    return {mean, deviation > 0 && std::isfinite(deviation) ? deviation : 1.0};
  }
};

struct NumericTask {
  std::size_t index;
  std::string name;
  Moments moments;
};
struct VocabularyTask {
  std::size_t index;
  const CategoricalFeature* feature;
  Counts counts;
};

std::vector<std::string> ranked(Counts counts, const CategoricalFeature& feature) {
  std::vector<std::pair<std::uint64_t, std::string>> kept;
  while (!counts.empty()) {
    auto entry = counts.extract(counts.begin());
    if (entry.mapped() >= feature.min_count) kept.emplace_back(entry.mapped(), std::move(entry.key()));
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  if (feature.max_vocabulary > 0 && kept.size() > feature.max_vocabulary) kept.resize(feature.max_vocabulary);
  std::vector<std::string> out;
  out.reserve(kept.size());
  for (auto& k : kept) out.push_back(std::move(k.second));
  return out;
}

/// Only csv can be without labels by configuration.
bool expects_labels(const Config& config) {
  return config.data.format != DataFormat::csv || !config.data.csv.label.empty();
}

bool needs_statistics(const Config& config) {
  return std::any_of(config.features.numeric.begin(), config.features.numeric.end(),
                     [](const auto& f) {
                       return f.transform == NumericTransform::standardize && (!f.mean || !f.stddev);
                     }) ||
         std::any_of(config.features.categorical.begin(), config.features.categorical.end(),
                     [](const auto& f) { return f.encoding == CategoryEncoding::vocabulary; });
}

}  // namespace

Statistics collect_statistics(const Config& config, const ConvertProgress& progress) {
  const FeaturesConfig& features = config.features;
  std::vector<NumericTask> numeric;
  std::vector<VocabularyTask> vocabularies;
  for (std::size_t i = 0; i < features.numeric.size(); ++i) {
    const NumericFeature& f = features.numeric[i];
    if (f.transform == NumericTransform::standardize && (!f.mean || !f.stddev))
      numeric.push_back({i, f.name, {}});
  }
  for (std::size_t i = 0; i < features.categorical.size(); ++i)
    if (features.categorical[i].encoding == CategoryEncoding::vocabulary)
      vocabularies.push_back({i, &features.categorical[i], {}});

  const SplitInputs inputs = split_inputs(config.data, Split::train);
  if (inputs.names.empty())
    throw ConfigError("data.train: no input, and features need statistics of the training rows");
  const auto rows = open_rows(config, expand_inputs(inputs.names), expects_labels(config));
  RawRow row;
  std::string reason;
  std::vector<double> values(numeric.size());
  std::vector<std::vector<std::string>> texts(vocabularies.size());
  std::uint64_t position = 0;
  while (rows->advance()) {
    const std::uint64_t at = position++;
    if (position % kProgressRows == 0 && progress) progress("statistics", position);
    if (inputs.filter) {
      const SplitConfig& split = config.data.split;
      const Split owner =
          split.by == SplitBy::ratio ? ratio_split(split, at) : column_split(split, rows->split_text());
      if (owner != Split::train) continue;
    }
    if (!rows->parse(row, reason)) continue;
    // All of the row is looked at before any of it counts.
    bool good = true;
    for (std::size_t i = 0; good && i < numeric.size(); ++i) {
      const std::string_view text = row.numeric[numeric[i].index];
      const auto x = is_missing(text) ? std::nan("") : parse_number(text);
      good = x.has_value();
      values[i] = x.value_or(0);
    }
    for (std::size_t i = 0; good && i < vocabularies.size(); ++i) {
      const CategoricalFeature& f = *vocabularies[i].feature;
      good =
          for_each_value(f, row.categorical[vocabularies[i].index], reason, [](std::string_view, float) {});
    }
    if (!good) continue;
    for (std::size_t i = 0; i < numeric.size(); ++i)
      if (!std::isnan(values[i])) numeric[i].moments.add(values[i]);
    for (auto& v : vocabularies)
      for_each_value(*v.feature, row.categorical[v.index], reason, [&](std::string_view text, float) {
        const auto found = v.counts.find(text);
        if (found != v.counts.end())
          ++found->second;
        else
          v.counts.emplace(text, 1);
      });
  }
  if (progress) progress("statistics", position);

  Statistics out;
  for (const auto& n : numeric) out.numeric[n.name] = n.moments.result();
  for (auto& v : vocabularies) out.vocabularies[v.feature->name] = ranked(std::move(v.counts), *v.feature);
  return out;
}

ConvertResult convert(const Config& config, const std::string& output_dir, const ConvertProgress& progress,
                      bool compress) {
  const auto started = std::chrono::steady_clock::now();
  if (config.data.format == DataFormat::packed)
    throw ConfigError("data.format: convert reads text formats, and this input is packed already");
  make_directories(output_dir);

  ConvertResult result;
  result.statistics_file = output_dir + "/statistics.json";
  Statistics statistics;
  if (has_split(config, Split::train) && needs_statistics(config))
    statistics = collect_statistics(config, progress);
  else if (!config.data.statistics.empty() && needs_statistics(config))
    statistics = load_statistics(config.data.statistics);
  else if (needs_statistics(config))
    throw ConfigError(
        "data.train: no input, and features need statistics of the training rows (or data.statistics)");
  save_statistics(statistics, result.statistics_file);

  Config encoding = config;
  encoding.data.statistics = result.statistics_file;
  const Schema schema = make_schema(encoding, describe_data(encoding).vocabulary_sizes);

  std::vector<PackedWriter> writers;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    if (!has_split(config, split)) continue;
    StreamOptions options;
    options.split = split;
    options.batch_size = kBatchRows;
    options.require_labels = expects_labels(config);
    const auto stream = open_stream(encoding, schema, options);
    ConvertedSplit converted;
    converted.split = split;
    converted.file = output_dir + "/" + to_string(split) + ".h5";
    PackedWriter& writer = writers.emplace_back(converted.file, schema, compress);
    Batch batch;
    std::uint64_t reported = 0;
    while (stream->next(batch)) {
      writer.append(batch);
      if (progress && writer.rows() >= reported + kProgressRows)
        progress(to_string(split), reported = writer.rows());
    }
    if (progress) progress(to_string(split), writer.rows());
    const StreamStats stats = stream->stats();
    converted.rows = writer.rows();
    converted.bad_rows = stats.bad_rows;
    for (const BadRow& bad : stats.first_bad_rows)
      if (result.first_bad_rows.size() < 10) result.first_bad_rows.push_back(bad);
    result.splits.push_back(std::move(converted));
  }
  if (writers.empty()) throw ConfigError("data: no input in train, validation or test");
  for (std::size_t i = 0; i < writers.size(); ++i) {
    ConvertedSplit& s = result.splits[i];
    s.bytes = writers[i].finish();
    result.rows += s.rows;
    result.bad_rows += s.bad_rows;
    result.bytes += s.bytes;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace hf
