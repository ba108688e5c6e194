// What a row is and how it is updated: the options that a training program and the servers share.
// Threading: plain values.
#pragma once

#include <cstdint>

namespace hf {

enum class TableKind : std::uint8_t {
  static_rows,  ///< ids 0 … rows-1, every row exists from the start
  dynamic,      ///< any 64-bit id; a row is created on first use in training; no collisions
};

/// How a server updates a row (or a dense parameter block) from a gradient.
enum class OptimizerKind : std::uint8_t { sgd, adagrad, rowwise_adagrad, adam, ftrl };

/// Hyper-parameters; those of other kinds are ignored. The learning rate travels with each push (schedules live on
/// the worker); `learning_rate` here is the base value.
struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  float learning_rate = 0.01F;
  float epsilon = 1e-8F;               ///< adagrad, rowwise_adagrad (1e-10 in torch), adam
  float initial_accumulator = 0.0F;    ///< adagrad, rowwise_adagrad
  float beta1 = 0.9F, beta2 = 0.999F;  ///< adam
  float l1 = 0.0F, l2 = 0.0F;          ///< ftrl
  float ftrl_beta = 1.0F;              ///< ftrl: McMahan 2013's beta (alpha is the learning rate)
  float weight_decay = 0.0F;           ///< all but ftrl: g += weight_decay * w, on touched rows only

  bool operator==(const OptimizerSpec&) const = default;
};

/// Floats of optimizer state beside `dim` weights. sgd 0, adagrad dim, rowwise_adagrad 1, adam 2·dim, ftrl 2·dim.
std::uint32_t optimizer_slots(OptimizerKind kind, std::uint32_t dim) noexcept;

enum class InitKind : std::uint8_t { zeros, uniform, normal };

/// Initial value of a row: a pure function of (seed, table name, id, column), the same on any number of servers.
struct InitSpec {
  InitKind kind = InitKind::uniform;
  float scale = 0.01F;          ///< uniform: [-scale, scale); normal: standard deviation
  std::uint32_t zero_tail = 0;  ///< the last so many columns start at 0 (linear weights beside an embedding)
  std::uint64_t seed = 42;

  bool operator==(const InitSpec&) const = default;
};

}  // namespace hf
