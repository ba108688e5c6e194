// The configuration of a run: every source merged (flag > environment > file > default) and checked.
// The YAML keys are the member names, nested as the structs are. README and configs/*.yaml show them.
//
// Notation:
// - A list of one value may be written as that value.
// - An item of features.numeric and features.categorical may be a plain name, or
//   {range: "C1..C26", …} for 26 features that share the other keys.
// - An optimizer is a mapping with the keys of OptimizerSpec (`kind` is called `name`); the dense one
//   has them at the level of its section. Unset keys of a table's optimizer come from
//   embedding.optimizer, those of model.wide_optimizer from FTRL's defaults.
// - Sizes are written 8GB, the staleness bound as a number or `inf`, ps_ratio as "1:3".
//
// Overrides reach into lists by index or by name: tables.users.dim, features.numeric.0.transform.
// Invariants: a Config that `load_config` returned is consistent; nobody checks again.
// Threading: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/table_spec.hpp"
#include "core/types.hpp"

namespace hf {

// ------------------------------------------------------------------------------------------- data

enum class DataFormat : std::uint8_t { criteo, csv, libsvm, libfm, libffm, packed };
enum class SplitBy : std::uint8_t {
  file,    ///< `train`, `validation`, `test` name files
  ratio,   ///< rows of `train` go to validation with probability `ratio`, seeded by (seed, row number)
  column,  ///< rows of `train` whose `column` (for instance a day) is in `validation_values`/`test_values`
};

struct SplitConfig {
  SplitBy by = SplitBy::file;
  double validation_ratio = 0.0;  ///< by ratio
  double test_ratio = 0.0;        ///< by ratio
  std::uint64_t seed = 42;        ///< by ratio
  std::string column;             ///< by column: name of an input column (csv) or its 1-based number
  std::string
      derive;  ///< by column: "" (the text itself), "day" (of a YYMMDDHH column), see CategoricalFeature
  std::vector<std::string> validation_values, test_values;
};

struct CsvConfig {
  std::string delimiter = ",";  ///< one character, or "\\t" / "tab"
  bool header = true;
  bool trim = true;                  ///< strip blanks around unquoted fields
  std::vector<std::string> columns;  ///< names, required when header is false
  std::vector<std::string> missing = {""};
  std::string label;                          ///< name of the label column; may be empty for `predict`
  std::vector<std::string> positive = {"1"};  ///< label texts that mean 1
  std::vector<std::string> negative = {"0"};  ///< label texts that mean 0; empty: everything else
};

struct DataConfig {
  DataFormat format = DataFormat::criteo;
  std::string data_dir;  ///< base of relative paths below; "" = the directory of the config file
  std::vector<std::string> train, validation, test;  ///< files, directories or globs; .gz is read as gzip
  SplitConfig split;
  CsvConfig csv;
  std::string statistics;  ///< statistics.json written by `convert`: vocabularies, means; "" = none
  std::uint64_t max_bad_rows = 0;
  std::uint64_t max_line_bytes = 16u << 20;
  bool shuffle = false;  ///< packed only: blocks and rows inside a block, seeded by (seed, epoch)
  std::uint32_t prefetch_batches = 4;
};

// --------------------------------------------------------------------------------------- features

enum class NumericTransform : std::uint8_t { raw, log1p, standardize, bucketize };

struct NumericFeature {
  std::string name;
  std::string column;                                    ///< csv column; "" = name. Criteo: I1 … I13
  NumericTransform transform = NumericTransform::log1p;  ///< log1p: sign(x)·log(1+|x|)
  std::optional<double> mean, stddev;  ///< standardize: from here, otherwise from data.statistics
  std::vector<double> boundaries;      ///< bucketize: becomes a categorical feature; bucket 0 = missing
  double missing_value = 0.0;          ///< the transformed value that stands for a missing one
  bool missing_indicator = false;      ///< adds a 0/1 dense column
  std::string table;                   ///< bucketize: see CategoricalFeature
  std::optional<std::uint32_t> dim;    ///< bucketize
};

enum class CategoryEncoding : std::uint8_t {
  hash,  ///< static table: 1 + xxh64(text, feature) mod (buckets-1), 0 = missing; dynamic: xxh64, 0 = missing
  vocabulary,  ///< 0 = missing, 1 = out of vocabulary, 2 … by falling count (built by `convert`)
  identity,    ///< the text is the id
};
enum class Pooling : std::uint8_t { sum, mean };

struct CategoricalFeature {
  std::string name;
  std::string column;  ///< csv column; "" = name. Criteo: C1 … C26
  /// "" | hour_of_day | day_of_week | day: from a timestamp YYMMDDHH (Avazu's `hour`).
  std::string derive;
  CategoryEncoding encoding = CategoryEncoding::hash;
  std::uint64_t buckets =
      0;  ///< rows of the feature's own static table (hash, identity); 0 = default_buckets
  std::uint64_t min_count = 1;       ///< vocabulary
  std::uint64_t max_vocabulary = 0;  ///< vocabulary: keep the most frequent; 0 = all
  std::string separator;             ///< multi-value column: splits the text; "" = one value
  Pooling pooling = Pooling::sum;
  std::string table;                 ///< shared table of `tables`; "" = own table with the feature's name
  std::optional<std::uint32_t> dim;  ///< own table only; unset = embedding.dim
};

struct FeaturesConfig {
  std::uint64_t default_buckets = 100000;
  std::vector<NumericFeature> numeric;
  std::vector<CategoricalFeature> categorical;
};

// ----------------------------------------------------------------------------------------- tables

struct EmbeddingConfig {  ///< defaults of every table
  std::uint32_t dim = 16;
  TableKind kind = TableKind::static_rows;
  bool wrap_ids = false;
  InitKind init = InitKind::uniform;
  float init_scale = 0.01F;
  OptimizerSpec
      optimizer;  ///< keys: name, learning_rate, epsilon, initial_accumulator, beta1, beta2, l1, l2, …
};

struct TableConfig {  ///< a table with a name of its own, shared by features or different from the defaults
  std::string name;
  std::uint64_t rows = 0;
  std::optional<std::uint32_t> dim;
  std::optional<TableKind> kind;
  std::optional<bool> wrap_ids;
  std::optional<InitKind> init;
  std::optional<float> init_scale;
  std::optional<OptimizerSpec> optimizer;
};

// ------------------------------------------------------------------------------------------ model

enum class ModelKind : std::uint8_t { lr, fm, wide_deep, deepfm, dlrm, dcnv2 };

struct ModelConfig {
  ModelKind name = ModelKind::deepfm;
  std::vector<std::uint32_t> hidden = {400, 400,
                                       400};        ///< wide_deep, deepfm, dcnv2: deep part; dlrm: top MLP
  std::vector<std::uint32_t> bottom_hidden = {64};  ///< dlrm: bottom MLP before its last layer of `dim`
  std::uint32_t cross_layers = 3;                   ///< dcnv2
  std::uint32_t cross_rank = 0;                     ///< dcnv2: low-rank factor; 0 = full matrix
  float dropout = 0.0F;
  /// wide_deep: row optimizer of the wide (linear) tables; unset = FTRL as in the paper.
  std::optional<OptimizerSpec> wide_optimizer;
};

enum class DecayKind : std::uint8_t { none, linear, cosine, exponential };

struct DenseOptimizerConfig {
  OptimizerSpec optimizer;            ///< name: sgd, adagrad or adam, with its keys at this level
  double clip_norm = 0.0;             ///< global norm of one worker's mean gradient, dense and rows; 0 = off
  std::uint64_t warmup_steps = 0;     ///< linear warm-up of every learning rate (dense and rows)
  DecayKind decay = DecayKind::none;  ///< from the end of warm-up to decay_steps, of every learning rate
  std::uint64_t decay_steps = 0;
  double decay_final = 0.0;  ///< linear, cosine: final factor; exponential: factor per decay_steps
};

// --------------------------------------------------------------------------------------- training

struct TrainConfig {
  std::uint32_t batch_size = 2048;  ///< rows per worker and step
  std::uint32_t epochs = 1;
  std::uint64_t max_steps = 0;         ///< per worker; 0 = no limit
  std::uint64_t staleness_bound = 1;   ///< 0 = synchronous; kStalenessInfinite ("inf") = asynchronous
  bool pipeline = true;                ///< pull the rows of batch t+1 while t computes
  std::uint64_t eval_every_steps = 0;  ///< 0 = at the end of each epoch only
  double log_every_seconds = 1.0;
  std::uint64_t max_bad_batches =
      10;  ///< batches rejected for a NaN/Inf loss or gradient before the run ends
  std::uint32_t threads =
      0;  ///< compute threads per worker; 0 = cores of the node / ranks on it - 1, at least 1
};

// ---------------------------------------------------------------------------------------- cluster

enum class RoleChoice : std::uint8_t { automatic, ps, worker, hybrid };
enum class Transport : std::uint8_t { automatic, shm, mpi };
enum class Placement : std::uint8_t { spread, packed };

struct ClusterConfig {
  RoleChoice role =
      RoleChoice::automatic;        ///< of this rank (MPMD colon launch); all ranks must choose, or none
  std::optional<std::uint32_t> ps;  ///< number of servers
  std::optional<std::pair<std::uint32_t, std::uint32_t>> ps_ratio;  ///< P:W
  Placement ps_placement = Placement::spread;
  std::uint32_t num_shards = 64;
  Transport transport = Transport::automatic;
  std::uint64_t buffer_pool_size = 64ull << 20;  ///< bytes of each rank's registered window
  /// Longest wait for a peer before the run ends with exit code 5. A dead rank is noticed at once by the launcher; this
  /// ends hangs, and must be longer than the slowest worker may lag behind at the end of an epoch.
  double wait_timeout_seconds = 1800.0;
};

// ---------------------------------------------------------------------------------------- the run

struct Config {
  std::uint64_t seed = 42;
  std::string workdir = "runs/default";
  std::string checkpoint_dir;  ///< "" = WORKDIR/checkpoints
  DataConfig data;
  FeaturesConfig features;
  EmbeddingConfig embedding;
  std::vector<TableConfig> tables;
  ModelConfig model;
  DenseOptimizerConfig optimizer;
  TrainConfig train;
  ClusterConfig cluster;
};

/// One override `a.b=value` and where it came from ("--set", "--batch_size", "HF_TRAIN__BATCH_SIZE"), for
/// messages.
struct Override {
  std::string key;    ///< dotted path
  std::string value;  ///< YAML text
  std::string origin;
};

/// Reads and checks a configuration. Relative paths inside are made absolute: data paths against data_dir (or
/// the file's directory), data_dir against the file's directory (given as an override: the current
/// directory), workdir and checkpoint_dir against the current directory. The override `model_config` names a
/// file whose `model`, `embedding` and `optimizer` sections are merged over those of the configuration file;
/// other overrides win over both. Throws: ConfigError whose text is one list of *all* problems, each with
/// file:line (or origin), the key, what was expected and found, and for an unknown key the nearest valid one.
Config load_config(const std::string& path, const std::vector<Override>& overrides);

/// The same from YAML text; `source` stands for the file name in messages.
Config parse_config(const std::string& yaml, const std::string& source,
                    const std::vector<Override>& overrides);

/// The whole configuration as YAML, every key present; parse_config(print_config(c)) gives an equal Config.
std::string print_config(const Config& config);

/// 16 hex digits: XXH64 of print_config without workdir, checkpoint_dir and cluster (what the result depends
/// on).
std::string config_hash(const Config& config);

/// What training on this configuration needs from data.statistics and does not have; `convert` needs none of
/// it.
std::vector<std::string> statistics_problems(const Config& config);

/// HF_… variables of the environment as overrides: HF_TRAIN__BATCH_SIZE=… means train.batch_size ("__" = dot,
/// case folded). Variables HF_… that name no key are problems of load_config like any other, except
/// HF_LOG_LEVEL, HF_TEST_… and the well-known variables of the Hugging Face tools, which are left out.
std::vector<Override> environment_overrides(const char* const* environ_block);

const char* to_string(DataFormat) noexcept;
const char* to_string(ModelKind) noexcept;
const char* to_string(Transport) noexcept;
const char* to_string(RoleChoice) noexcept;

}  // namespace hf
