#include "model/mlp.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <string>

#include "core/error.hpp"
#include "core/random.hpp"

namespace hf {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Rows of one block of a column sum. Blocks are summed apart and then together, in order, whatever the number
// of threads: deterministic, and more exact than one long sum.
constexpr std::int64_t kBlockRows = 64;

std::int64_t block_count(std::int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

template <class Body>
void for_each_block(std::int64_t rows, const Body& body) {
  at::parallel_for(0, block_count(rows), /*grain_size=*/4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block)
      body(block, block * kBlockRows, std::min(rows, (block + 1) * kBlockRows));
  });
}

struct DropoutMask {
  double probability = 0.0;
  std::uint64_t key = 0;

  bool active() const { return probability > 0.0; }
  double scale() const { return 1.0 / (1.0 - probability); }
};

template <class T>
void bias_relu_row(T* __restrict h, const T* __restrict bias, std::int64_t cols) {
  for (std::int64_t j = 0; j < cols; ++j) {
    const T z = h[j] + bias[j];
    h[j] = T{0} > z ? T{0} : z;  // this order keeps NaN
  }
}

// One 64-bit word decides about two neighbours. A choice between factors, not between results: no branch to
// mispredict.
template <class T>
void dropout_row(T* h, std::int64_t cols, std::uint64_t row_key, std::uint32_t drop_below, T scale) {
  const auto factor = [&](std::uint64_t bits) {
    return static_cast<std::uint32_t>(bits) < drop_below ? T{0} : scale;
  };
  std::int64_t j = 0;
  for (; j + 1 < cols; j += 2) {
    const std::uint64_t bits = mix64(row_key + static_cast<std::uint64_t>(j));
    h[j] *= factor(bits);
    h[j + 1] *= factor(bits >> 32);
  }
  if (j < cols) h[j] *= factor(mix64(row_key + static_cast<std::uint64_t>(j)));
}

// h = dropout(relu(h + bias))
template <class T>
void bias_relu(T* h, const T* bias, std::int64_t rows, std::int64_t cols, const DropoutMask& mask) {
  const auto drop_below = static_cast<std::uint32_t>(mask.probability * 0x1p32);
  const auto scale = static_cast<T>(mask.scale());
  for_each_block(rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      bias_relu_row(h + i * cols, bias, cols);
      if (mask.active())
        dropout_row(h + i * cols, cols, mix64(mask.key, static_cast<std::uint64_t>(i)), drop_below, scale);
    }
  });
}

// Adds the blocks' partial sums ([blocks, cols]) in order.
template <class T>
void sum_blocks(const std::vector<T>& partial, T* out, std::int64_t blocks, std::int64_t stride,
                std::int64_t cols) {
  std::fill_n(out, cols, T{0});
  for (std::int64_t b = 0; b < blocks; ++b)
    for (std::int64_t j = 0; j < cols; ++j) out[j] += partial[static_cast<std::size_t>(b * stride + j)];
}

// g where the unit was active (and kept by the dropout, which left h = 0 otherwise), else 0; sum += that.
template <class T>
void mask_row(T* __restrict g, const T* __restrict h, T* __restrict sum, std::int64_t cols, T scale) {
  for (std::int64_t j = 0; j < cols; ++j) {
    const T upstream = g[j];
    const T d = (h[j] <= T{0} ? T{0} : upstream) * scale;  // no arithmetic under the condition: it vectorises
    g[j] = d;
    sum[j] += d;
  }
}

// In place: the gradient of relu's (and dropout's) input from that of its output h; bias_grad = its column
// sums.
template <class T>
void relu_backward(T* g, const T* h, T* bias_grad, std::int64_t rows, std::int64_t cols, T scale) {
  std::vector<T> partial(static_cast<std::size_t>(block_count(rows) * cols));
  for_each_block(rows, [&](std::int64_t block, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      mask_row(g + i * cols, h + i * cols, partial.data() + block * cols, cols, scale);
  });
  sum_blocks(partial, bias_grad, block_count(rows), cols, cols);
}

template <class T>
void unit_row(T g, const T* __restrict h, const T* __restrict w, T* __restrict out, T* __restrict weight_sum,
              T* __restrict bias_sum, std::int64_t cols, T scale) {
  const T scaled = g * scale;
  for (std::int64_t j = 0; j < cols; ++j) {
    const T active = h[j];
    const T weight = w[j];
    weight_sum[j] += g * active;
    const T d = (active <= T{0} ? T{0} : weight) * scaled;
    out[j] = d;
    bias_sum[j] += d;
  }
}

// Backward of a layer of width 1 behind a ReLU whose output is h: the weight's gradient, the masked gradient
// of the ReLU's input and the previous bias's gradient in one pass over h.
template <class T>
void unit_layer_backward(const T* g, const T* h, const T* w, T* out, T* weight_grad, T* bias_grad,
                         std::int64_t rows, std::int64_t cols, T scale) {
  std::vector<T> partial(static_cast<std::size_t>(block_count(rows) * 2 * cols));
  for_each_block(rows, [&](std::int64_t block, std::int64_t begin, std::int64_t end) {
    T* const weight_sum = partial.data() + block * 2 * cols;
    for (std::int64_t i = begin; i < end; ++i)
      unit_row(g[i], h + i * cols, w, out + i * cols, weight_sum, weight_sum + cols, cols, scale);
  });
  std::vector<T> sums(static_cast<std::size_t>(2 * cols));
  sum_blocks(partial, sums.data(), block_count(rows), 2 * cols, 2 * cols);
  std::copy_n(sums.data(), cols, weight_grad);
  std::copy_n(sums.data() + cols, cols, bias_grad);
}

template <class T>
T dot(const T* __restrict a, const T* __restrict b, std::int64_t n) {
  constexpr std::int64_t kLanes = 32;
  T sum[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t j = 0; j < kLanes; ++j) sum[j] += a[i + j] * b[i + j];
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  for (std::int64_t step = kLanes / 2; step > 0; step /= 2)
    for (std::int64_t j = 0; j < step; ++j) sum[j] += sum[j + step];
  return sum[0];
}

// y = x wᵀ + b for a layer of width 1.
template <class T>
void unit_layer_forward(const T* x, const T* w, T bias, T* y, std::int64_t rows, std::int64_t cols) {
  for_each_block(rows, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) y[i] = bias + dot(x + i * cols, w, cols);
  });
}

struct MlpFunction : torch::autograd::Function<MlpFunction> {
  // parameters: weight0, bias0, weight1, …
  static Tensor forward(AutogradContext* ctx, const Tensor& input, torch::TensorList parameters,
                        bool relu_last, double dropout, std::int64_t mask_key) {
    const std::size_t layers = parameters.size() / 2;
    const std::int64_t rows = input.size(0);
    variable_list saved;
    saved.reserve(1 + 3 * layers);
    saved.push_back(input.contiguous());
    Tensor x = saved.front();
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const Tensor& weight = parameters[2 * layer];
      const Tensor& bias = parameters[2 * layer + 1];
      const std::int64_t out = weight.size(0);
      const bool relu = layer + 1 < layers || relu_last;
      Tensor y = at::empty({rows, out}, input.options());
      if (out == 1 && !relu) {
        AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "mlp_unit_layer", [&] {
          unit_layer_forward(x.const_data_ptr<scalar_t>(), weight.const_data_ptr<scalar_t>(),
                             *bias.const_data_ptr<scalar_t>(), y.mutable_data_ptr<scalar_t>(), rows,
                             x.size(1));
        });
      } else if (relu) {
        at::mm_out(y, x, weight.t());
        const DropoutMask mask{dropout, mix64(static_cast<std::uint64_t>(mask_key), layer)};
        AT_DISPATCH_FLOATING_TYPES(y.scalar_type(), "mlp_bias_relu", [&] {
          bias_relu(y.mutable_data_ptr<scalar_t>(), bias.const_data_ptr<scalar_t>(), rows, out, mask);
        });
      } else {
        at::addmm_out(y, bias, x, weight.t());
      }
      x = y;
      saved.push_back(y);
    }
    if (!relu_last) saved.pop_back();
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["layers"] = static_cast<std::int64_t>(layers);
    ctx->saved_data["relu_last"] = relu_last;
    ctx->saved_data["scale"] = dropout > 0.0 ? 1.0 / (1.0 - dropout) : 1.0;
    return x;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& output_grads) {
    const auto layers = static_cast<std::size_t>(ctx->saved_data["layers"].toInt());
    const bool relu_last = ctx->saved_data["relu_last"].toBool();
    const double scale = ctx->saved_data["scale"].toDouble();
    // activations[l] is the input of layer l; with relu_last activations[layers] is the output.
    const variable_list activations = ctx->get_saved_variables();
    const std::size_t first_parameter = layers + (relu_last ? 1 : 0);
    const std::int64_t rows = activations.front().size(0);

    variable_list grads(1 + 2 * layers +
                        3);  // the input, the parameters, three arguments that are no tensors
    Tensor g = output_grads.front();
    const auto new_bias_grad = [&](std::size_t layer) -> Tensor& {
      const Tensor& bias = activations[first_parameter + 2 * layer + 1];
      return grads[1 + 2 * layer + 1] = at::empty_like(bias);
    };
    const auto backward_through_relu = [&](Tensor& grad, const Tensor& h, std::size_t layer) {
      Tensor& bias_grad = new_bias_grad(layer);
      AT_DISPATCH_FLOATING_TYPES(grad.scalar_type(), "mlp_relu_backward", [&] {
        relu_backward(grad.mutable_data_ptr<scalar_t>(), h.const_data_ptr<scalar_t>(),
                      bias_grad.mutable_data_ptr<scalar_t>(), rows, h.size(1), static_cast<scalar_t>(scale));
      });
    };

    if (relu_last) {
      g = g.clone(at::MemoryFormat::Contiguous);  // autograd may share the gradient it handed over
      backward_through_relu(g, activations[layers], layers - 1);
    } else {
      g = g.contiguous();
      grads[1 + 2 * (layers - 1) + 1] = g.sum(0);
    }
    for (std::size_t layer = layers; layer-- > 0;) {
      const Tensor& x = activations[layer];
      const Tensor& weight = activations[first_parameter + 2 * layer];
      Tensor& weight_grad = grads[1 + 2 * layer] = at::empty_like(weight, at::MemoryFormat::Contiguous);
      if (layer > 0 && weight.size(0) == 1) {
        Tensor previous = at::empty_like(x);
        Tensor& bias_grad = new_bias_grad(layer - 1);
        AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "mlp_unit_layer_backward", [&] {
          unit_layer_backward(
              g.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), weight.const_data_ptr<scalar_t>(),
              previous.mutable_data_ptr<scalar_t>(), weight_grad.mutable_data_ptr<scalar_t>(),
              bias_grad.mutable_data_ptr<scalar_t>(), rows, x.size(1), static_cast<scalar_t>(scale));
        });
        g = previous;
        continue;
      }
      at::mm_out(weight_grad, g.t(), x);
      if (layer > 0) {
        Tensor previous = at::empty_like(x);
        at::mm_out(previous, g, weight);
        backward_through_relu(previous, x, layer - 1);
        g = previous;
      } else if (ctx->needs_input_grad(0)) {
        grads[0] = at::mm(g, weight);
      }
    }
    return grads;
  }
};

}  // namespace

std::vector<std::int64_t> mlp_widths(std::int64_t input, const std::vector<std::uint32_t>& hidden,
                                     std::int64_t output) {
  std::vector<std::int64_t> widths{input};
  widths.insert(widths.end(), hidden.begin(), hidden.end());
  widths.push_back(output);
  return widths;
}

Mlp::Mlp(MlpOptions options, Initializer& init) : options_(std::move(options)) {
  const auto& widths = options_.widths;
  HF_CHECK(widths.size() >= 2, "an MLP has an input and an output width");
  HF_CHECK(options_.dropout >= 0.0 && options_.dropout < 1.0, "dropout lies in [0, 1)");
  for (std::size_t layer = 0; layer + 1 < widths.size(); ++layer) {
    const std::string number = std::to_string(layer);
    parameters_.push_back(
        register_parameter("weight" + number, init.linear_weight(widths[layer + 1], widths[layer])));
    parameters_.push_back(
        register_parameter("bias" + number, init.linear_bias(widths[layer + 1], widths[layer])));
  }
}

Tensor Mlp::forward(const Tensor& x) {
  HF_CHECK(x.dim() == 2 && x.size(1) == options_.widths.front(),
           "MLP input: expected [batch, " + std::to_string(options_.widths.front()) + "]");
  const bool drop = options_.dropout > 0.0 && is_training();
  const std::uint64_t key = drop ? mix64(options_.dropout_seed, passes_++) : 0;
  return MlpFunction::apply(x, torch::TensorList(parameters_), options_.relu_last,
                            drop ? options_.dropout : 0.0, static_cast<std::int64_t>(key));
}

}  // namespace hf
