// The one list of configuration keys: name, member, bounds. Reading, printing, overrides and suggestions all
// walk it. A visitor V offers
//   v.value("key", member, bounds)                  a scalar, an optional scalar, or a list of scalars
//   v.group("key", [&](auto& g) { … })              a nested mapping
//   v.optional_group("key", member, base, fn)       std::optional<Struct>, read on top of `base`
//   v.items("key", vector, fn)                      a list of mappings
// Internal to core.
// Threading: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/config.hpp"

namespace hf::keys {

/// Of a number, or of each number in a list.
struct Bounds {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  ///< min itself is not allowed
  bool below_max = false;  ///< max itself is not allowed
};
constexpr Bounds at_least(double min) { return {.min = min}; }
constexpr Bounds above(double min) { return {.min = min, .above_min = true}; }
constexpr Bounds between(double min, double max) { return {.min = min, .max = max}; }
constexpr Bounds ratio() { return {.min = 0, .max = 1, .below_max = true}; }

/// Types with a notation of their own.
struct ByteSize {  ///< "8GB"
  std::uint64_t& value;
};
struct StalenessBound {  ///< a whole number or "inf"
  std::uint64_t& value;
};
struct ServerRatio {  ///< "1:3"
  std::optional<std::pair<std::uint32_t, std::uint32_t>>& value;
};

constexpr double kMaxRows = 0x1p40;
constexpr double kMaxDim = 65536;

// --------------------------------------------------------------------------- names of enumerators
template <class E>
using Names = std::pair<E, const char*>;

constexpr auto enum_names(DataFormat) {
  using enum DataFormat;
  return std::to_array<Names<DataFormat>>({{criteo, "criteo"},
                                           {csv, "csv"},
                                           {libsvm, "libsvm"},
                                           {libfm, "libfm"},
                                           {libffm, "libffm"},
                                           {packed, "packed"}});
}
constexpr auto enum_names(SplitBy) {
  using enum SplitBy;
  return std::to_array<Names<SplitBy>>({{file, "file"}, {ratio, "ratio"}, {column, "column"}});
}
constexpr auto enum_names(NumericTransform) {
  using enum NumericTransform;
  return std::to_array<Names<NumericTransform>>(
      {{raw, "raw"}, {log1p, "log1p"}, {standardize, "standardize"}, {bucketize, "bucketize"}});
}
constexpr auto enum_names(CategoryEncoding) {
  using enum CategoryEncoding;
  return std::to_array<Names<CategoryEncoding>>(
      {{hash, "hash"}, {vocabulary, "vocabulary"}, {identity, "identity"}});
}
constexpr auto enum_names(Pooling) {
  return std::to_array<Names<Pooling>>({{Pooling::sum, "sum"}, {Pooling::mean, "mean"}});
}
constexpr auto enum_names(ModelKind) {
  using enum ModelKind;
  return std::to_array<Names<ModelKind>>({{lr, "lr"},
                                          {fm, "fm"},
                                          {wide_deep, "wide_deep"},
                                          {deepfm, "deepfm"},
                                          {dlrm, "dlrm"},
                                          {dcnv2, "dcnv2"}});
}
constexpr auto enum_names(DecayKind) {
  using enum DecayKind;
  return std::to_array<Names<DecayKind>>(
      {{none, "none"}, {linear, "linear"}, {cosine, "cosine"}, {exponential, "exponential"}});
}
constexpr auto enum_names(RoleChoice) {
  using enum RoleChoice;
  return std::to_array<Names<RoleChoice>>(
      {{automatic, "auto"}, {ps, "ps"}, {worker, "worker"}, {hybrid, "hybrid"}});
}
constexpr auto enum_names(Transport) {
  using enum Transport;
  return std::to_array<Names<Transport>>({{automatic, "auto"}, {shm, "shm"}, {mpi, "mpi"}});
}
constexpr auto enum_names(Placement) {
  return std::to_array<Names<Placement>>({{Placement::spread, "spread"}, {Placement::packed, "packed"}});
}
inline auto enum_names(OptimizerKind) {
  using enum OptimizerKind;
  std::array<Names<OptimizerKind>, 5> names{};
  std::size_t n = 0;
  for (const OptimizerKind kind : {sgd, adagrad, rowwise_adagrad, adam, ftrl})
    names[n++] = {kind, to_string(kind)};
  return names;
}
inline auto enum_names(TableKind) {
  return std::to_array<Names<TableKind>>({{TableKind::static_rows, to_string(TableKind::static_rows)},
                                          {TableKind::dynamic, to_string(TableKind::dynamic)}});
}
inline auto enum_names(InitKind) {
  return std::to_array<Names<InitKind>>({{InitKind::zeros, to_string(InitKind::zeros)},
                                         {InitKind::uniform, to_string(InitKind::uniform)},
                                         {InitKind::normal, to_string(InitKind::normal)}});
}

/// The optimizers that a dense network has.
struct DenseOptimizerKind {
  OptimizerKind& value;
};
constexpr bool is_dense_optimizer(OptimizerKind kind) {
  return kind == OptimizerKind::sgd || kind == OptimizerKind::adagrad || kind == OptimizerKind::adam;
}

// --------------------------------------------------------------------------------------- the keys
template <class V>
void describe_common(V& v, OptimizerSpec& s) {
  v.value("learning_rate", s.learning_rate, above(0));
  v.value("epsilon", s.epsilon, above(0));
  v.value("initial_accumulator", s.initial_accumulator, at_least(0));
  v.value("beta1", s.beta1, ratio());
  v.value("beta2", s.beta2, ratio());
  v.value("weight_decay", s.weight_decay, at_least(0));
}

template <class V>
void describe(V& v, OptimizerSpec& s) {
  v.value("name", s.kind);
  describe_common(v, s);
  v.value("l1", s.l1, at_least(0));
  v.value("l2", s.l2, at_least(0));
  v.value("ftrl_beta", s.ftrl_beta, at_least(0));
}

template <class V>
void describe(V& v, SplitConfig& c) {
  v.value("by", c.by);
  v.value("validation_ratio", c.validation_ratio, ratio());
  v.value("test_ratio", c.test_ratio, ratio());
  v.value("seed", c.seed);
  v.value("column", c.column);
  v.value("derive", c.derive);
  v.value("validation_values", c.validation_values);
  v.value("test_values", c.test_values);
}

template <class V>
void describe(V& v, CsvConfig& c) {
  v.value("delimiter", c.delimiter);
  v.value("header", c.header);
  v.value("trim", c.trim);
  v.value("columns", c.columns);
  v.value("missing", c.missing);
  v.value("label", c.label);
  v.value("positive", c.positive);
  v.value("negative", c.negative);
}

template <class V>
void describe(V& v, DataConfig& c) {
  v.value("format", c.format);
  v.value("data_dir", c.data_dir);
  v.value("train", c.train);
  v.value("validation", c.validation);
  v.value("test", c.test);
  v.group("split", [&](auto& g) { describe(g, c.split); });
  v.group("csv", [&](auto& g) { describe(g, c.csv); });
  v.value("statistics", c.statistics);
  v.value("max_bad_rows", c.max_bad_rows);
  ByteSize line{c.max_line_bytes};
  v.value("max_line_bytes", line, between(1, 0x1p40));
  v.value("shuffle", c.shuffle);
  v.value("prefetch_batches", c.prefetch_batches, between(1, 4096));
}

template <class V>
void describe(V& v, NumericFeature& f) {
  v.value("name", f.name);
  v.value("column", f.column);
  v.value("transform", f.transform);
  v.value("mean", f.mean);
  v.value("stddev", f.stddev, above(0));
  v.value("boundaries", f.boundaries);
  v.value("missing_value", f.missing_value);
  v.value("missing_indicator", f.missing_indicator);
  v.value("table", f.table);
  v.value("dim", f.dim, between(1, kMaxDim));
}

template <class V>
void describe(V& v, CategoricalFeature& f) {
  v.value("name", f.name);
  v.value("column", f.column);
  v.value("derive", f.derive);
  v.value("encoding", f.encoding);
  v.value("buckets", f.buckets, between(0, kMaxRows));
  v.value("min_count", f.min_count, at_least(1));
  v.value("max_vocabulary", f.max_vocabulary);
  v.value("separator", f.separator);
  v.value("pooling", f.pooling);
  v.value("table", f.table);
  v.value("dim", f.dim, between(1, kMaxDim));
}

template <class V>
void describe(V& v, EmbeddingConfig& c) {
  v.value("dim", c.dim, between(1, kMaxDim));
  v.value("kind", c.kind);
  v.value("wrap_ids", c.wrap_ids);
  v.value("init", c.init);
  v.value("init_scale", c.init_scale, at_least(0));
  v.group("optimizer", [&](auto& g) { describe(g, c.optimizer); });
}

template <class V>
void describe(V& v, TableConfig& t, const OptimizerSpec& inherited) {
  v.value("name", t.name);
  v.value("rows", t.rows, between(0, kMaxRows));
  v.value("dim", t.dim, between(1, kMaxDim));
  v.value("kind", t.kind);
  v.value("wrap_ids", t.wrap_ids);
  v.value("init", t.init);
  v.value("init_scale", t.init_scale, at_least(0));
  v.optional_group("optimizer", t.optimizer, inherited, [](auto& g, OptimizerSpec& s) { describe(g, s); });
}

template <class V>
void describe(V& v, ModelConfig& c) {
  v.value("name", c.name);
  v.value("hidden", c.hidden, between(1, 0x1p20));
  v.value("bottom_hidden", c.bottom_hidden, between(1, 0x1p20));
  v.value("cross_layers", c.cross_layers, between(1, 64));
  v.value("cross_rank", c.cross_rank, between(0, 0x1p20));
  v.value("dropout", c.dropout, ratio());
  OptimizerSpec paper;
  paper.kind = OptimizerKind::ftrl;
  v.optional_group("wide_optimizer", c.wide_optimizer, paper,
                   [](auto& g, OptimizerSpec& s) { describe(g, s); });
}

template <class V>
void describe(V& v, DenseOptimizerConfig& c) {
  DenseOptimizerKind kind{c.optimizer.kind};
  v.value("name", kind);
  describe_common(v, c.optimizer);
  v.value("clip_norm", c.clip_norm, at_least(0));
  v.value("warmup_steps", c.warmup_steps);
  v.value("decay", c.decay);
  v.value("decay_steps", c.decay_steps);
  v.value("decay_final", c.decay_final, between(0, 1));
}

template <class V>
void describe(V& v, TrainConfig& c) {
  v.value("batch_size", c.batch_size, between(1, 0x1p24));
  v.value("epochs", c.epochs, at_least(1));
  v.value("max_steps", c.max_steps);
  StalenessBound bound{c.staleness_bound};
  v.value("staleness_bound", bound);
  v.value("pipeline", c.pipeline);
  v.value("eval_every_steps", c.eval_every_steps);
  v.value("log_every_seconds", c.log_every_seconds, above(0));
  v.value("max_bad_batches", c.max_bad_batches);
  v.value("threads", c.threads, between(0, 4096));
}

template <class V>
void describe(V& v, ClusterConfig& c) {
  v.value("role", c.role);
  v.value("ps", c.ps, at_least(1));
  ServerRatio servers{c.ps_ratio};
  v.value("ps_ratio", servers);
  v.value("ps_placement", c.ps_placement);
  v.value("num_shards", c.num_shards, between(1, 65536));
  v.value("transport", c.transport);
  ByteSize pool{c.buffer_pool_size};
  v.value("buffer_pool_size", pool, between(65536, 0x1p50));
  v.value("wait_timeout_seconds", c.wait_timeout_seconds, above(0));
}

template <class V>
void describe(V& v, Config& c) {
  v.value("seed", c.seed);
  v.value("workdir", c.workdir);
  v.value("checkpoint_dir", c.checkpoint_dir);
  v.group("data", [&](auto& g) { describe(g, c.data); });
  v.group("features", [&](auto& g) {
    g.value("default_buckets", c.features.default_buckets, between(2, kMaxRows));
    g.items("numeric", c.features.numeric, [](auto& i, NumericFeature& f) { describe(i, f); });
    g.items("categorical", c.features.categorical, [](auto& i, CategoricalFeature& f) { describe(i, f); });
  });
  // Before `tables`: their optimizers start from this one.
  v.group("embedding", [&](auto& g) { describe(g, c.embedding); });
  v.items("tables", c.tables, [&](auto& i, TableConfig& t) { describe(i, t, c.embedding.optimizer); });
  v.group("model", [&](auto& g) { describe(g, c.model); });
  v.group("optimizer", [&](auto& g) { describe(g, c.optimizer); });
  v.group("train", [&](auto& g) { describe(g, c.train); });
  v.group("cluster", [&](auto& g) { describe(g, c.cluster); });
}

}  // namespace hf::keys
