// The row optimizers: one step on one record. The same code updates embedding rows and dense parameter
// blocks.
//
// Record: w[dim], then state. g is the gradient after scaling and (not ftrl) `+ weight_decay · w`.
//   sgd              w -= lr·g
//   adagrad          G += g²;                    w -= lr·g / (√G + ε)    Duchi, Hazan, Singer 2011, Fig. 1
//   rowwise_adagrad  G += mean(g²) (one float);  w -= lr·g / (√G + ε)    Naumov et al. 2019 (DLRM), §rowwise
//   adam             m, v as Kingma & Ba 2015, Alg. 1; t = global step; only touched rows move (lazy)
//   ftrl             per coordinate, McMahan et al. 2013, Alg. 1; state z, n; alpha = lr
//                    start: n = 0, z = -w·(beta/alpha + l2) - sign(w)·l1 with the base rate, whose
//                    solution is w again. The weights are solved anew from z with the rate of the step, so
//                    a changing rate rescales them (as in other implementations of Alg. 1); rate 0 = no step.
// Layout of state: adagrad G[dim]; rowwise_adagrad G; adam m[dim] v[dim]; ftrl z[dim] n[dim].
#pragma once

#include "core/table_spec.hpp"
#include "table/table.hpp"

namespace hf {

/// Optimizer state of a fresh record. ftrl: z is chosen so that the weights the row starts with are its
/// solution.
void init_optimizer_state(const OptimizerSpec& spec, std::uint32_t dim, const ApplyArgs& base,
                          float* record) noexcept;

/// One step on one record (portable reference; `Table::apply` uses specialised loops with equal results).
void apply_row(const OptimizerSpec& spec, std::uint32_t dim, const ApplyArgs& args, const float* grad,
               float* record) noexcept;

}  // namespace hf
