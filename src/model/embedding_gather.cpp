#include "model/embedding_gather.hpp"

#include <ATen/Dispatch.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.hpp"

namespace hf {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// What backward needs beside tensors.
struct GatherPlan : torch::CustomClassHolder {
  std::vector<GatherColumn> columns;
  std::int64_t batch = 0;
  std::shared_ptr<const void> keep_alive;
  std::function<void()> on_backward;
};

// Rows of the batch per block: the block's part of the [batch, columns, dim] tensor stays in the second-level
// cache while all columns go over it.
constexpr std::int64_t kBlockRows = 64;
// Ids to fetch ahead: covers a read from memory at a few nanoseconds per id.
constexpr std::uint32_t kPrefetchIds = 16;

std::uint32_t id_count(const GatherColumn& column, std::int64_t batch) {
  return column.offsets == nullptr ? static_cast<std::uint32_t>(batch) : column.offsets[batch];
}

void check_column(const GatherColumn& column, std::int64_t batch, std::int64_t unique_rows) {
  std::uint32_t first = 0;
  if (column.offsets != nullptr) {
    first = column.offsets[0];
    bool rising = true;
    for (std::int64_t b = 0; b < batch; ++b) rising &= column.offsets[b] <= column.offsets[b + 1];
    HF_CHECK(rising, "offsets of a bag column must not fall");
  }
  std::uint32_t largest = 0;
  const std::uint32_t end = id_count(column, batch);
  for (std::uint32_t i = first; i < end; ++i) largest = std::max(largest, column.index[i]);
  HF_CHECK(first == end || largest < unique_rows,
           "row index " + std::to_string(largest) + " of " + std::to_string(unique_rows) + " rows");
}

// Calls body(id position, weight) for each id of a bag, with the mean's division folded into the weight.
template <class T, class Body>
void for_each_id(const GatherColumn& column, std::int64_t b, const Body& body) {
  const std::uint32_t begin = column.offsets[b];
  const std::uint32_t end = column.offsets[b + 1];
  const T scale = column.pooling == Pooling::mean && end > begin ? T{1} / static_cast<T>(end - begin) : T{1};
  for (std::uint32_t i = begin; i < end; ++i)
    body(i, column.weights == nullptr ? scale : scale * static_cast<T>(column.weights[i]));
}

// kDim > 0: the width is known at compile time and the inner loops unroll; 0: any width.
template <class T, int kDim>
struct Kernel {
  std::int64_t runtime_dim;
  std::int64_t dim() const { return kDim > 0 ? kDim : runtime_dim; }

  void copy(T* __restrict to, const T* __restrict from) const {
    for (std::int64_t k = 0; k < dim(); ++k) to[k] = from[k];
  }
  void zero(T* to) const {
    for (std::int64_t k = 0; k < dim(); ++k) to[k] = T{0};
  }
  void add(T* __restrict to, const T* __restrict from) const {
    for (std::int64_t k = 0; k < dim(); ++k) to[k] += from[k];
  }
  void add_scaled(T* __restrict to, const T* __restrict from, T scale) const {
    for (std::int64_t k = 0; k < dim(); ++k) to[k] += scale * from[k];
  }

  template <class Touch>
  void for_each_row_block(const GatherPlan& plan, const T* prefetched, const Touch& touch) const {
    for (std::int64_t begin = 0; begin < plan.batch; begin += kBlockRows) {
      const std::int64_t end = std::min(plan.batch, begin + kBlockRows);
      for (std::size_t c = 0; c < plan.columns.size(); ++c) {
        const GatherColumn& column = plan.columns[c];
        const std::uint32_t ids = id_count(column, plan.batch);
        const auto prefetch = [&](std::uint32_t i) {
          if (i + kPrefetchIds < ids)
            __builtin_prefetch(prefetched +
                               static_cast<std::int64_t>(column.index[i + kPrefetchIds]) * dim());
        };
        for (std::int64_t b = begin; b < end; ++b) touch(column, c, b, prefetch);
      }
    }
  }

  void forward(const GatherPlan& plan, const T* rows, T* out) const {
    const auto columns = static_cast<std::int64_t>(plan.columns.size());
    for_each_row_block(plan, rows,
                       [&](const GatherColumn& column, std::size_t c, std::int64_t b, const auto& prefetch) {
                         T* const to = out + (b * columns + static_cast<std::int64_t>(c)) * dim();
                         if (column.offsets == nullptr) {
                           const auto i = static_cast<std::uint32_t>(b);
                           prefetch(i);
                           const T* const from = rows + static_cast<std::int64_t>(column.index[i]) * dim();
                           copy(to, from);
                           if (column.weights != nullptr)
                             for (std::int64_t k = 0; k < dim(); ++k)
                               to[k] *= static_cast<T>(column.weights[i]);
                           return;
                         }
                         zero(to);
                         for_each_id<T>(column, b, [&](std::uint32_t i, T weight) {
                           prefetch(i);
                           add_scaled(to, rows + static_cast<std::int64_t>(column.index[i]) * dim(), weight);
                         });
                       });
  }

  void backward(const GatherPlan& plan, const T* grad, std::int64_t batch_stride, T* grad_rows) const {
    for_each_row_block(plan, grad_rows,
                       [&](const GatherColumn& column, std::size_t c, std::int64_t b, const auto& prefetch) {
                         const T* const from = grad + b * batch_stride + static_cast<std::int64_t>(c) * dim();
                         if (column.offsets == nullptr) {
                           const auto i = static_cast<std::uint32_t>(b);
                           prefetch(i);
                           T* const to = grad_rows + static_cast<std::int64_t>(column.index[i]) * dim();
                           if (column.weights == nullptr)
                             add(to, from);
                           else
                             add_scaled(to, from, static_cast<T>(column.weights[i]));
                           return;
                         }
                         for_each_id<T>(column, b, [&](std::uint32_t i, T weight) {
                           prefetch(i);
                           add_scaled(grad_rows + static_cast<std::int64_t>(column.index[i]) * dim(), from,
                                      weight);
                         });
                       });
  }
};

template <class T, class Body>
void with_kernel(std::int64_t dim, const Body& body) {
  switch (dim) {
    case 1:
      return body(Kernel<T, 1>{dim});
    case 8:
      return body(Kernel<T, 8>{dim});
    case 16:
      return body(Kernel<T, 16>{dim});
    case 17:
      return body(Kernel<T, 17>{dim});
    case 32:
      return body(Kernel<T, 32>{dim});
    case 64:
      return body(Kernel<T, 64>{dim});
    default:
      return body(Kernel<T, 0>{dim});
  }
}

struct GatherFunction : torch::autograd::Function<GatherFunction> {
  static Tensor forward(AutogradContext* ctx, const Tensor& rows,
                        const c10::intrusive_ptr<GatherPlan>& plan) {
    const auto columns = static_cast<std::int64_t>(plan->columns.size());
    Tensor out = at::empty({plan->batch, columns, rows.size(1)}, rows.options());
    AT_DISPATCH_FLOATING_TYPES(rows.scalar_type(), "embedding_gather", [&] {
      with_kernel<scalar_t>(rows.size(1), [&](const auto& kernel) {
        kernel.forward(*plan, rows.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>());
      });
    });
    ctx->saved_data["plan"] = c10::IValue::make_capsule(plan);
    ctx->saved_data["rows"] = rows.size(0);
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& output_grads) {
    const auto capsule = ctx->saved_data["plan"].toCapsule();
    const auto& plan = static_cast<const GatherPlan&>(*capsule);
    if (plan.on_backward) plan.on_backward();
    Tensor grad = output_grads.front();
    // A slice of a wider gradient ([batch, all features]) is read in place.
    const bool dense_rows = grad.stride(2) == 1 && grad.stride(1) == grad.size(2);
    if (!dense_rows) grad = grad.contiguous();
    Tensor grad_rows = at::zeros({ctx->saved_data["rows"].toInt(), grad.size(2)}, grad.options());
    AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "embedding_gather_backward", [&] {
      with_kernel<scalar_t>(grad.size(2), [&](const auto& kernel) {
        kernel.backward(plan, grad.const_data_ptr<scalar_t>(), grad.stride(0),
                        grad_rows.mutable_data_ptr<scalar_t>());
      });
    });
    return {grad_rows, Tensor()};
  }
};

}  // namespace

Tensor embedding_gather(const Tensor& rows, std::span<const GatherColumn> columns, std::int64_t batch,
                        std::shared_ptr<const void> keep_alive, std::function<void()> on_backward) {
  HF_CHECK(rows.dim() == 2 && rows.is_contiguous(), "embedding rows: expected a contiguous [U, dim] tensor");
  for (const GatherColumn& column : columns) check_column(column, batch, rows.size(0));
  auto plan = c10::make_intrusive<GatherPlan>();
  plan->columns.assign(columns.begin(), columns.end());
  plan->batch = batch;
  plan->keep_alive = std::move(keep_alive);
  plan->on_backward = std::move(on_backward);
  return GatherFunction::apply(rows, plan);
}

}  // namespace hf
