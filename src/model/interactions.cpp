#include "model/interactions.hpp"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <vector>

namespace hf {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One row of the batch. row: [F, k+1]; sums: [k] (out); features: [F·k] or nullptr. Returns the row's logit.
template <class T>
T factorization_row(const T* __restrict row, std::int64_t fields, std::int64_t k, T* __restrict sums,
                    T* __restrict squares, T* __restrict features) {
  T linear{0};
  std::fill_n(sums, k, T{0});
  std::fill_n(squares, k, T{0});
  for (std::int64_t f = 0; f < fields; ++f) {
    const T* const v = row + f * (k + 1);
    for (std::int64_t j = 0; j < k; ++j) {
      sums[j] += v[j];
      squares[j] += v[j] * v[j];
    }
    if (features != nullptr) std::copy_n(v, k, features + f * k);
    linear += v[k];
  }
  T pairs{0};
  for (std::int64_t j = 0; j < k; ++j) pairs += sums[j] * sums[j] - squares[j];
  return linear + pairs / T{2};
}

// d logit / d v_fj = sum_j − v_fj; d logit / d w_f = 1. g and feature_grads may each be absent.
template <class T>
void factorization_row_backward(const T* __restrict row, std::int64_t fields, std::int64_t k,
                                const T* __restrict sums, T g, const T* __restrict feature_grads,
                                T* __restrict out) {
  for (std::int64_t f = 0; f < fields; ++f) {
    const T* const v = row + f * (k + 1);
    T* const d = out + f * (k + 1);
    if (feature_grads == nullptr)
      for (std::int64_t j = 0; j < k; ++j) d[j] = g * (sums[j] - v[j]);
    else
      for (std::int64_t j = 0; j < k; ++j) d[j] = g * (sums[j] - v[j]) + feature_grads[f * k + j];
    d[k] = g;
  }
}

struct FactorizationFunction : torch::autograd::Function<FactorizationFunction> {
  static variable_list forward(AutogradContext* ctx, const Tensor& group_in, const Tensor& dense_in,
                               bool with_features) {
    const Tensor group = group_in.contiguous();
    const Tensor dense = dense_in.contiguous();
    const std::int64_t batch = group.size(0), fields = group.size(1), k = group.size(2) - 1;
    const std::int64_t num_dense = dense.size(1), width = fields * k + num_dense;
    Tensor logit = at::empty({batch}, group.options());
    Tensor sums = at::empty({batch, k}, group.options());
    Tensor features = at::empty({batch, with_features ? width : 0}, group.options());
    AT_DISPATCH_FLOATING_TYPES(group.scalar_type(), "factorization_terms", [&] {
      const auto* const in = group.const_data_ptr<scalar_t>();
      const auto* const numbers = dense.const_data_ptr<scalar_t>();
      auto* const out = features.mutable_data_ptr<scalar_t>();
      auto* const y = logit.mutable_data_ptr<scalar_t>();
      auto* const s = sums.mutable_data_ptr<scalar_t>();
      std::vector<scalar_t> squares(static_cast<std::size_t>(k));
      for (std::int64_t b = 0; b < batch; ++b) {
        scalar_t* const to = with_features ? out + b * width : nullptr;
        y[b] = factorization_row(in + b * fields * (k + 1), fields, k, s + b * k, squares.data(), to);
        if (with_features) std::copy_n(numbers + b * num_dense, num_dense, to + fields * k);
      }
    });
    ctx->save_for_backward({group, sums});
    ctx->set_materialize_grads(false);
    return {logit, features};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& output_grads) {
    const auto saved = ctx->get_saved_variables();
    const Tensor& group = saved[0];
    const Tensor& sums = saved[1];
    const std::int64_t batch = group.size(0), fields = group.size(1), k = group.size(2) - 1;
    const Tensor logit_grad = output_grads[0].defined() ? output_grads[0].contiguous() : Tensor();
    const Tensor feature_grad =
        output_grads[1].defined() && output_grads[1].size(1) > 0 ? output_grads[1].contiguous() : Tensor();
    const std::int64_t width = feature_grad.defined() ? feature_grad.size(1) : 0;
    variable_list grads(3);
    if (ctx->needs_input_grad(0)) {
      grads[0] = at::empty_like(group);
      AT_DISPATCH_FLOATING_TYPES(group.scalar_type(), "factorization_terms_backward", [&] {
        const auto* const in = group.const_data_ptr<scalar_t>();
        const auto* const s = sums.const_data_ptr<scalar_t>();
        const auto* const g = logit_grad.defined() ? logit_grad.const_data_ptr<scalar_t>() : nullptr;
        const auto* const fg = feature_grad.defined() ? feature_grad.const_data_ptr<scalar_t>() : nullptr;
        auto* const out = grads[0].mutable_data_ptr<scalar_t>();
        const std::int64_t row = fields * (k + 1);
        for (std::int64_t b = 0; b < batch; ++b)
          factorization_row_backward(in + b * row, fields, k, s + b * k, g == nullptr ? scalar_t{0} : g[b],
                                     fg == nullptr ? nullptr : fg + b * width, out + b * row);
      });
    }
    if (ctx->needs_input_grad(1) && feature_grad.defined())
      grads[1] = feature_grad.narrow(1, fields * k, width - fields * k);
    return grads;
  }
};

template <class T>
T dot(const T* __restrict a, const T* __restrict b, std::int64_t k) {
  constexpr std::int64_t kLanes = 8;
  T sum[kLanes] = {};
  std::int64_t j = 0;
  for (; j + kLanes <= k; j += kLanes)
    for (std::int64_t l = 0; l < kLanes; ++l) sum[l] += a[j + l] * b[j + l];
  for (; j < k; ++j) sum[0] += a[j] * b[j];
  return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

template <class T>
void add_scaled(T* __restrict to, const T* __restrict from, T scale, std::int64_t k) {
  for (std::int64_t j = 0; j < k; ++j) to[j] += scale * from[j];
}

struct PairwiseDotFunction : torch::autograd::Function<PairwiseDotFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& vectors_in) {
    const Tensor vectors = vectors_in.contiguous();
    const std::int64_t batch = vectors.size(0), n = vectors.size(1), k = vectors.size(2),
                       pairs = n * (n - 1) / 2;
    Tensor out = at::empty({batch, pairs}, vectors.options());
    AT_DISPATCH_FLOATING_TYPES(vectors.scalar_type(), "pairwise_dot", [&] {
      const auto* row = vectors.const_data_ptr<scalar_t>();
      auto* to = out.mutable_data_ptr<scalar_t>();
      for (std::int64_t b = 0; b < batch; ++b, row += n * k)
        for (std::int64_t i = 1; i < n; ++i)
          for (std::int64_t j = 0; j < i; ++j) *to++ = dot(row + i * k, row + j * k, k);
    });
    ctx->save_for_backward({vectors});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& output_grads) {
    const Tensor vectors = ctx->get_saved_variables().front();
    const Tensor grad = output_grads.front().contiguous();
    const std::int64_t batch = vectors.size(0), n = vectors.size(1), k = vectors.size(2);
    Tensor out = at::zeros_like(vectors);
    AT_DISPATCH_FLOATING_TYPES(vectors.scalar_type(), "pairwise_dot_backward", [&] {
      const auto* row = vectors.const_data_ptr<scalar_t>();
      const auto* g = grad.const_data_ptr<scalar_t>();
      auto* to = out.mutable_data_ptr<scalar_t>();
      for (std::int64_t b = 0; b < batch; ++b, row += n * k, to += n * k)
        for (std::int64_t i = 1; i < n; ++i)
          for (std::int64_t j = 0; j < i; ++j, ++g) {
            add_scaled(to + i * k, row + j * k, *g, k);
            add_scaled(to + j * k, row + i * k, *g, k);
          }
    });
    return {out};
  }
};

}  // namespace

FactorizationTerms factorization_terms(const Tensor& group, const Tensor& dense, bool with_features) {
  auto outputs = FactorizationFunction::apply(group, dense, with_features);
  return {outputs[0], with_features ? outputs[1] : Tensor()};
}

Tensor pairwise_dot(const Tensor& vectors) { return PairwiseDotFunction::apply(vectors); }

Tensor concat_features(std::span<const Tensor> groups, const Tensor& dense) {
  std::vector<Tensor> parts;
  parts.reserve(groups.size() + 1);
  for (const Tensor& group : groups) parts.push_back(group.flatten(1));
  if (dense.size(1) > 0) parts.push_back(dense);
  if (parts.empty()) return dense;
  return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
}

}  // namespace hf
