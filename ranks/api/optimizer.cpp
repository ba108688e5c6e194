#include "hyperframes/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "model/finite.hpp"
#include "ranks/api/context.hpp"
#include "table/gradient_merge.hpp"

namespace hf {
namespace {

// Large enough that a block is one long copy and one vectorised update, small enough to spread over the servers.
constexpr std::uint32_t kBlockFloats = 4096;

double squared_norm(const float* values, std::int64_t count) {
  if (count == 0) return 0;
  const torch::Tensor view = torch::from_blob(const_cast<float*>(values), {count}, torch::kFloat32);
  return view.dot(view).item<double>();
}

}  // namespace

struct AsyncOptimizer::Impl {
  explicit Impl(std::vector<torch::Tensor> p) : parameters(std::move(p)) {}

  std::vector<torch::Tensor> parameters;
  OptimizerSpec spec;
  torch::Tensor values, gradients;  // flat, padded to whole blocks
  std::uint32_t block_floats = 0;
  std::vector<RowId> blocks;
  TableId table;
  std::function<double(std::uint64_t)> schedule;
  double clip_norm = 0;
  std::map<std::uint32_t, std::unique_ptr<GradientMerge>> merges;  // by table

  void collect_gradients();
  void push_rows(Context& context, double weight, double factor, float scale);
  double row_squared_norm(const Context& context) const;
};

AsyncOptimizer::AsyncOptimizer(std::vector<torch::Tensor> parameters, const OptimizerSpec& spec)
    : impl_(std::make_unique<Impl>(std::move(parameters))) {
  Context& context = Context::current();
  impl_->spec = spec;
  context.row_optimizer = spec;
  context.create_all_tables();
  std::int64_t total = 0;
  for (const torch::Tensor& p : impl_->parameters) {
    if (p.scalar_type() != torch::kFloat32 || !p.device().is_cpu())
      throw ConfigError("hf::Async… optimizers: parameters: expected float32 on the CPU, found " +
                        std::string(torch::toString(p.scalar_type())) + " on " + p.device().str());
    total += p.numel();
  }
  if (total == 0) return;

  ParameterClient& client = context.client();
  impl_->block_floats = std::min(kBlockFloats, client.widest_row_floats());
  const auto blocks = static_cast<std::uint64_t>((total + impl_->block_floats - 1) / impl_->block_floats);
  impl_->values = torch::zeros({static_cast<std::int64_t>(blocks * impl_->block_floats)}, torch::kFloat32);
  impl_->gradients = torch::zeros_like(impl_->values);
  impl_->blocks.resize(blocks);
  std::iota(impl_->blocks.begin(), impl_->blocks.end(), RowId{0});
  // Parameters become views of one flat buffer: a pull writes them in place.
  torch::NoGradGuard no_grad;
  std::int64_t at = 0;
  for (torch::Tensor& p : impl_->parameters) {
    torch::Tensor view = impl_->values.narrow(0, at, p.numel()).view(p.sizes());
    view.copy_(p);
    p.set_data(view);
    at += p.numel();
  }
  TableSpec table{.name = "dense",
                  .kind = TableKind::static_rows,
                  .rows = blocks,
                  .dim = impl_->block_floats,
                  .wrap_ids = false,
                  .optimizer = spec,
                  .init = {.kind = InitKind::zeros}};
  impl_->table = client.create_table(table);
  context.workers.barrier("all workers to create the dense parameters");
  if (context.worker_id->value == 0)
    client.assign(impl_->table, impl_->blocks, impl_->values.data_ptr<float>());
  context.workers.barrier("worker 0 to store the initial dense parameters");
  pull_parameters();
}

AsyncOptimizer::~AsyncOptimizer() = default;

void AsyncOptimizer::zero_grad() {
  for (torch::Tensor& p : impl_->parameters) p.mutable_grad() = torch::Tensor();
  Context::current().pending.clear();
}

void AsyncOptimizer::set_schedule(std::function<double(std::uint64_t)> factor) {
  impl_->schedule = std::move(factor);
}
void AsyncOptimizer::set_clip_norm(double norm) { impl_->clip_norm = norm; }
std::uint64_t AsyncOptimizer::steps() const noexcept { return Context::current().step; }

void AsyncOptimizer::pull_parameters() {
  if (impl_->blocks.empty()) return;
  ParameterClient& client = Context::current().client();
  client.complete_pull(
      client.initiate_pull(impl_->table, impl_->blocks, impl_->values.data_ptr<float>(), 0, kPullUngated));
}

/// Copies the parameters' gradients into the flat buffer; an absent gradient is 0.
void AsyncOptimizer::Impl::collect_gradients() {
  auto* out = gradients.data_ptr<float>();
  for (const torch::Tensor& p : parameters) {
    const auto n = static_cast<std::size_t>(p.numel());
    if (p.grad().defined()) {
      const torch::Tensor g = p.grad().contiguous();
      std::memcpy(out, g.data_ptr<float>(), n * sizeof(float));
    } else {
      std::fill_n(out, n, 0.0F);
    }
    out += n;
  }
}

double AsyncOptimizer::Impl::row_squared_norm(const Context& context) const {
  double sum = 0;
  for (const PendingGradients& p : context.pending) {
    if (!p.rows.grad().defined()) continue;
    const std::int64_t dim = p.rows.size(1);
    sum += squared_norm(p.rows.grad().data_ptr<float>() + p.first_row * dim,
                        static_cast<std::int64_t>(p.ids.size()) * dim);
  }
  return sum;
}

void AsyncOptimizer::Impl::push_rows(Context& context, double weight, double factor, float scale) {
  ParameterClient& client = context.client();
  const auto args_of = [&](TableId id) {
    return ParameterClient::PushArgs{
        .step = context.step,
        .weight = static_cast<float>(weight),
        .learning_rate = static_cast<float>(client.table(id).optimizer.learning_rate * factor)};
  };
  std::map<TableId, int> uses;
  for (const PendingGradients& p : context.pending) ++uses[p.table];
  for (const PendingGradients& p : context.pending) {
    if (!p.rows.grad().defined()) continue;
    torch::Tensor grad = p.rows.grad();
    if (scale != 1.0F && p.first_row == 0)
      grad.mul_(scale);  // once per tensor: the part at row 0 comes first
    const float* part = grad.data_ptr<float>() + p.first_row * grad.size(1);
    if (uses[p.table] == 1) {
      client.push(p.table, p.ids, part, args_of(p.table));
    } else {
      // A table used twice since the last step gets one update from the sum.
      auto& merge = merges[p.table.value];
      if (!merge) merge = std::make_unique<GradientMerge>(static_cast<std::uint32_t>(grad.size(1)));
      merge->add(p.ids, part);
    }
  }
  for (auto& [table_id, merge] : merges) {
    if (merge->ids().empty()) continue;
    client.push(TableId{table_id}, merge->ids(), merge->grads(), args_of(TableId{table_id}));
    merge->clear();
  }
  context.pending.clear();
}

bool AsyncOptimizer::gradients_finite() const {
  for (const torch::Tensor& p : impl_->parameters)
    if (p.grad().defined() && !all_finite(p.grad())) return false;
  const torch::Tensor* last = nullptr;
  for (const PendingGradients& p : Context::current().pending) {
    if (last && last->is_same(p.rows)) continue;  // several tables of one group share a tensor
    last = &p.rows;
    if (p.rows.grad().defined() && !all_finite(p.rows.grad())) return false;
  }
  return true;
}

void AsyncOptimizer::step(double weight) {
  HF_CHECK(weight > 0, "step() with a weight that is not positive");
  Context& context = Context::current();
  ParameterClient& client = context.client();
  const double factor = impl_->schedule ? impl_->schedule(context.step) : 1.0;
  if (!impl_->blocks.empty()) impl_->collect_gradients();
  float scale = 1.0F;
  if (impl_->clip_norm > 0) {
    const double dense = impl_->blocks.empty()
                             ? 0.0
                             : squared_norm(impl_->gradients.data_ptr<float>(), impl_->gradients.numel());
    const double norm = std::sqrt(dense + impl_->row_squared_norm(context)) / weight;
    if (norm > impl_->clip_norm) scale = static_cast<float>(impl_->clip_norm / norm);
    if (scale != 1.0F && !impl_->blocks.empty()) impl_->gradients.mul_(scale);
  }
  // The dense blocks first, so that the servers work on them while the rows are packed.
  PullHandle dense;
  if (!impl_->blocks.empty()) {
    client.push(impl_->table, impl_->blocks, impl_->gradients.data_ptr<float>(),
                {.step = context.step,
                 .weight = static_cast<float>(weight),
                 .learning_rate = static_cast<float>(impl_->spec.learning_rate * factor)});
    dense = client.initiate_pull(impl_->table, impl_->blocks, impl_->values.data_ptr<float>(),
                                 context.step + 1, 0);
  }
  impl_->push_rows(context, weight, factor, scale);
  client.clock(++context.step, static_cast<float>(weight));
  if (dense) client.complete_pull(dense);
}

void AsyncOptimizer::skip_step() {
  Context& context = Context::current();
  context.pending.clear();
  context.client().clock(++context.step, 0);
  if (impl_->blocks.empty()) return;
  ParameterClient& client = context.client();
  client.complete_pull(
      client.initiate_pull(impl_->table, impl_->blocks, impl_->values.data_ptr<float>(), context.step, 0));
}

namespace {
OptimizerSpec make_spec(OptimizerKind kind, double learning_rate, double weight_decay) {
  OptimizerSpec spec;
  spec.kind = kind;
  spec.learning_rate = static_cast<float>(learning_rate);
  spec.weight_decay = static_cast<float>(weight_decay);
  return spec;
}
OptimizerSpec adagrad_spec(double learning_rate, double epsilon, double initial_accumulator,
                           double weight_decay) {
  OptimizerSpec spec = make_spec(OptimizerKind::adagrad, learning_rate, weight_decay);
  spec.epsilon = static_cast<float>(epsilon);
  spec.initial_accumulator = static_cast<float>(initial_accumulator);
  return spec;
}
OptimizerSpec adam_spec(double learning_rate, double beta1, double beta2, double epsilon,
                        double weight_decay) {
  OptimizerSpec spec = make_spec(OptimizerKind::adam, learning_rate, weight_decay);
  spec.beta1 = static_cast<float>(beta1);
  spec.beta2 = static_cast<float>(beta2);
  spec.epsilon = static_cast<float>(epsilon);
  return spec;
}
}  // namespace

AsyncSGD::AsyncSGD(std::vector<torch::Tensor> parameters, double learning_rate, double weight_decay)
    : AsyncOptimizer(std::move(parameters), make_spec(OptimizerKind::sgd, learning_rate, weight_decay)) {}
AsyncAdagrad::AsyncAdagrad(std::vector<torch::Tensor> parameters, double learning_rate, double epsilon,
                           double initial_accumulator, double weight_decay)
    : AsyncOptimizer(std::move(parameters),
                     adagrad_spec(learning_rate, epsilon, initial_accumulator, weight_decay)) {}
AsyncAdam::AsyncAdam(std::vector<torch::Tensor> parameters, double learning_rate, double beta1, double beta2,
                     double epsilon, double weight_decay)
    : AsyncOptimizer(std::move(parameters), adam_spec(learning_rate, beta1, beta2, epsilon, weight_decay)) {}

}  // namespace hf
