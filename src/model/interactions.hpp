// The feature interactions that models share, each one node of the autograd graph with one pass over memory.
// First derivatives only; float and double; deterministic.
// Threading: the caller's thread.
#pragma once

#include <torch/torch.h>

#include <span>

namespace hf {

struct FactorizationTerms {
  torch::Tensor logit;     ///< [batch]: Σ_f w_f + Σ_{f<g} <v_f, v_g>
  torch::Tensor features;  ///< [batch, F·k + num_dense]: v_1 … v_F, dense; undefined where not asked for
};

/// The factorization machine of one-hot features (bags are sums of theirs), and the factors laid out as the
/// input of a network, in the same pass. Shape: group [batch, F, k + 1], the last column being w; dense
/// [batch, num_dense]. Source: Rendle 2010, eq. 1 by way of Lemma 3.1 (eq. 5): ½ Σ_j ((Σ_f v_fj)² − Σ_f
/// v_fj²), O(F·k).
FactorizationTerms factorization_terms(const torch::Tensor& group, const torch::Tensor& dense,
                                       bool with_features);

/// Dot products of all pairs of vectors of a row: (1,0), (2,0), (2,1), (3,0), …
/// Shape: vectors [batch, n, k]; returns [batch, n(n-1)/2]. Source: Naumov et al. 2019, section 2.1.3.
torch::Tensor pairwise_dot(const torch::Tensor& vectors);

/// [batch, Σ lookups·dim + num_dense]: every group's rows side by side, then the dense columns.
torch::Tensor concat_features(std::span<const torch::Tensor> groups, const torch::Tensor& dense);

}  // namespace hf
