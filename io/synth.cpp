#include "io/synth.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "io/atomic_file.hpp"
#include "io/planted_model.hpp"

namespace hf {
namespace {

constexpr std::uint64_t kExactAucRows = 16u << 20;
constexpr std::uint64_t kMaxVocabulary = 1u << 28;

/// log(1 + e^z) without overflow: -log of the probability of label 0.
double softplus(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); }

/// Area under the ROC curve of the true logits: exact while few rows, then from a fine histogram.
class AucOfTruth {
 public:
  explicit AucOfTruth(std::uint64_t rows) : exact_(rows <= kExactAucRows) {
    if (!exact_)
      for (auto& h : histogram_) h.assign(kBins, 0);
  }
  void add(double logit, bool label) {
    if (exact_)
      scores_[label].push_back(logit);
    else
      ++histogram_[label][static_cast<std::size_t>(std::clamp((logit / 40 + 0.5), 0.0, 1.0) * (kBins - 1))];
  }
  void finish(SynthTruth& truth) {
    double negatives = 0, positives = 0, concordant = 0, tied = 0;
    const auto group = [&](double neg, double pos) {
      concordant += pos * (negatives + 0.5 * neg);
      tied += 0.5 * pos * neg;
      negatives += neg;
      positives += pos;
    };
    if (exact_) {
      auto& [neg, pos] = scores_;
      std::sort(neg.begin(), neg.end());
      std::sort(pos.begin(), pos.end());
      for (std::size_t i = 0, j = 0; i < neg.size() || j < pos.size();) {
        const double at = j == pos.size() || (i < neg.size() && neg[i] < pos[j]) ? neg[i] : pos[j];
        const std::size_t i0 = i, j0 = j;
        while (i < neg.size() && neg[i] == at) ++i;
        while (j < pos.size() && pos[j] == at) ++j;
        group(static_cast<double>(i - i0), static_cast<double>(j - j0));
      }
    } else {
      for (std::size_t b = 0; b < kBins; ++b)
        group(static_cast<double>(histogram_[0][b]), static_cast<double>(histogram_[1][b]));
    }
    const double all_pairs = negatives * positives;
    truth.auc = all_pairs > 0 ? concordant / all_pairs : 0.5;
    truth.auc_error = exact_ || all_pairs == 0 ? 0 : tied / all_pairs;
  }

 private:
  static constexpr std::size_t kBins = 1u << 20;
  bool exact_;
  std::array<std::vector<double>, 2> scores_;
  std::array<std::vector<std::uint64_t>, 2> histogram_;
};

/// A text file, plain or gzip, that appears under its name when complete.
class TextSink {
 public:
  TextSink(const std::string& path, bool gzip) : file_(path) {
    // gzopen in transparent mode ("T") writes plain bytes: one code path for both.
    out_ = gzopen(file_.temporary_path().c_str(), gzip ? "wb1" : "wbT");
    if (out_ == nullptr) throw IoError(path + ": cannot create: " + std::strerror(errno));
    gzbuffer(out_, 1u << 18);
  }
  ~TextSink() {
    if (out_ != nullptr) gzclose(out_);
  }
  TextSink(const TextSink&) = delete;
  TextSink& operator=(const TextSink&) = delete;
  void write(const std::string& text) {
    if (gzwrite(out_, text.data(), static_cast<unsigned>(text.size())) != static_cast<int>(text.size()))
      fail();
  }
  /// Returns the bytes on disk.
  std::uint64_t close() {
    gzFile out = std::exchange(out_, nullptr);
    if (gzclose(out) != Z_OK) fail();
    file_.commit();
    return std::filesystem::file_size(file_.path());
  }

 private:
  [[noreturn]] void fail() { throw IoError(file_.path() + ": cannot write: " + std::strerror(errno)); }
  AtomicFile file_;
  gzFile out_ = nullptr;
};

std::vector<std::uint64_t> checked_vocabulary(const SynthOptions& o) {
  std::string problems;
  const auto expect = [&](bool ok, const std::string& text) {
    if (!ok) problems += "\n  " + text;
  };
  expect(!o.output_dir.empty(), "output directory: not given");
  expect(o.rows >= 1, "rows: expected at least 1");
  expect(o.files >= 1 && o.files <= 1000 && o.files <= o.rows,
         "files: expected 1 … 1000 and no more than rows, found " + std::to_string(o.files));
  expect(o.base_rate > 0 && o.base_rate < 1,
         "base_rate: expected between 0 and 1, found " + std::to_string(o.base_rate));
  expect(o.missing_rate >= 0 && o.missing_rate < 1,
         "missing_rate: expected 0 or more and below 1, found " + std::to_string(o.missing_rate));
  expect(o.zipf >= 0 && o.zipf <= 10, "zipf: expected 0 … 10, found " + std::to_string(o.zipf));
  expect(2 * o.interactions <= PlantedModel::kCategorical,
         "interactions: expected at most 13 pairs, found " + std::to_string(o.interactions));
  expect(o.interaction_rank >= 1 && o.interaction_rank <= 64,
         "interaction_rank: expected 1 … 64, found " + std::to_string(o.interaction_rank));
  for (const double scale : {o.numeric_scale, o.category_scale, o.interaction_scale})
    expect(scale >= 0 && scale <= 10, "scales: expected 0 … 10, found " + std::to_string(scale));
  std::vector<std::uint64_t> v = o.vocabulary;
  if (v.empty())
    v = {50, 30, 300, 100, 40, 20, 50, 30, 10, 100, 40, 500, 30,
         25, 50, 100, 10,  40, 25, 10, 80, 15, 12,  50, 25,  30};
  if (v.size() == 1) v.assign(PlantedModel::kCategorical, v.front());
  expect(v.size() == PlantedModel::kCategorical,
         "vocabulary: expected 1 or 26 sizes, found " + std::to_string(v.size()));
  for (const std::uint64_t n : v)
    expect(n >= 1 && n <= kMaxVocabulary, "vocabulary: expected sizes 1 … " + std::to_string(kMaxVocabulary) +
                                              ", found " + std::to_string(n));
  if (!problems.empty()) throw ConfigError("synth: impossible options" + problems);
  return v;
}

/// Removes the data files that an earlier truth.json in the directory names: with another number of files
/// they would otherwise stay and be read as part of the new set.
void remove_earlier_set(const std::string& truth_file) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(truth_file, error)) return;
  const auto truth = nlohmann::json::parse(read_small_file(truth_file), nullptr, false);
  if (!truth.is_object() || truth.value("format", nlohmann::json()) != "hyperframes-truth")
    throw FormatError(truth_file +
                      ": exists and was not written by this program; give another output directory");
  for (const char* set : {"train", "validation"})
    if (truth.contains(set) && truth[set].is_object() && truth[set].contains("files") &&
        truth[set]["files"].is_array())
      for (const auto& name : truth[set]["files"])
        // Base names only: whatever the file says, nothing outside the directory is touched.
        if (name.is_string())
          fs::remove(fs::path(truth_file).parent_path() / fs::path(name.get<std::string>()).filename(),
                     error);
  fs::remove(truth_file, error);
}

nlohmann::json to_json(const SynthTruth& t) {
  std::vector<std::string> names;
  for (const auto& f : t.files) names.push_back(std::filesystem::path(f).filename().string());
  return {{"files", names}, {"rows", t.rows},           {"clicks", t.clicks},
          {"auc", t.auc},   {"auc_error", t.auc_error}, {"logloss", t.logloss}};
}

std::string file_name(const SynthOptions& o, std::uint32_t file) {
  char name[32];
  if (o.files == 1)
    std::snprintf(name, sizeof name, "train.tsv");
  else
    std::snprintf(name, sizeof name, "train_%03u.tsv", file);
  return o.output_dir + "/" + name + (o.gzip ? ".gz" : "");
}

}  // namespace

SynthResult synthesize(const SynthOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  const std::vector<std::uint64_t> vocabulary = checked_vocabulary(options);
  make_directories(options.output_dir);
  SynthResult result;
  result.truth_file = options.output_dir + "/truth.json";
  remove_earlier_set(result.truth_file);

  const PlantedModel model(options, vocabulary);
  const std::uint64_t all_rows = options.rows + options.validation_rows;
  std::uint64_t done = 0;
  const auto write_set = [&](PlantedModel::Set set, std::uint64_t rows, std::vector<std::string> files) {
    SynthTruth truth;
    truth.rows = rows;
    AucOfTruth auc(rows);
    double loss = 0;
    PlantedModel::Row row;
    std::string text;
    for (std::uint64_t f = 0; f < files.size(); ++f) {
      TextSink sink(files[f], options.gzip);
      // A split in equal parts; 128 bits because rows · f may pass 64.
      const auto bound = [&](std::uint64_t k) {
        return static_cast<std::uint64_t>(static_cast<unsigned __int128>(rows) * k / files.size());
      };
      for (std::uint64_t i = bound(f); i < bound(f + 1); ++i) {
        const auto [logit, label] = model.draw(set, i, row);
        model.print(row, label, text);
        auc.add(logit, label);
        loss += softplus(label ? -logit : logit);
        truth.clicks += label;
        if (text.size() > (1u << 18)) {
          sink.write(text);
          text.clear();
        }
        if (++done % 65536 == 0 && options.progress) options.progress(done, all_rows);
      }
      sink.write(text);
      text.clear();
      result.bytes += sink.close();
    }
    truth.files = std::move(files);
    auc.finish(truth);
    truth.logloss = rows == 0 ? 0 : loss / static_cast<double>(rows);
    return truth;
  };

  std::vector<std::string> train_files, validation_files;
  for (std::uint32_t f = 0; f < options.files; ++f) train_files.push_back(file_name(options, f));
  if (options.validation_rows > 0)
    validation_files.push_back(options.output_dir + "/validation.tsv" + (options.gzip ? ".gz" : ""));
  result.train = write_set(PlantedModel::Set::train, options.rows, train_files);
  result.validation = write_set(PlantedModel::Set::validation, options.validation_rows, validation_files);

  nlohmann::json pairs = nlohmann::json::array();
  for (const PlantedModel::Pair& p : model.pairs())
    pairs.push_back({"C" + std::to_string(p.first + 1), "C" + std::to_string(p.second + 1)});
  nlohmann::json truth = {{"format", "hyperframes-truth"},
                          {"format_version", 1},
                          {"generator",
                           {{"seed", options.seed},
                            {"bias", model.bias()},
                            {"base_rate", options.base_rate},
                            {"missing_rate", options.missing_rate},
                            {"zipf", options.zipf},
                            {"numeric_scale", options.numeric_scale},
                            {"category_scale", options.category_scale},
                            {"interaction_scale", options.interaction_scale},
                            {"interaction_rank", options.interaction_rank},
                            {"interactions", pairs},
                            {"vocabulary", vocabulary}}},
                          {"train", to_json(result.train)}};
  if (options.validation_rows > 0) truth["validation"] = to_json(result.validation);
  write_file_atomically(result.truth_file, truth.dump(2) + "\n");
  if (options.progress) options.progress(all_rows, all_rows);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return result;
}

}  // namespace hf
