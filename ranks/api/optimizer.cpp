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
  bool stepped = false;                                            // since zero_grad()
  bool owns_rows = false;

  /// The gradient of one table in this step.
  struct TableGradient {
    TableId table;
    std::span<const RowId> ids;
    const float* values;  // [ids, dim]
    std::uint32_t dim;
  };

  bool has_dense_gradients() const;
  void collect_gradients();
  std::vector<TableGradient> row_gradients(const PendingGradients& pending);
  void push_rows(Context& context, std::vector<TableGradient>& row_grads, double weight, double factor,
                 float scale);
};

AsyncOptimizer::AsyncOptimizer(std::vector<torch::Tensor> parameters, const OptimizerSpec& spec)
    : impl_(std::make_unique<Impl>(std::move(parameters))) {
  Context& context = Context::current();
  if (context.has_optimizer)
    throw ConfigError(
        "a second hf::Async… optimizer: expected one per process group, for all parameters (its step() "
        "pushes the rows of "
        "every embedding; an embedding may have an optimizer of its own in DistributedEmbeddingOptions)");
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
  impl_->owns_rows = context.has_optimizer = true;
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
  TableSpec table{.name = kDenseTable,
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

AsyncOptimizer::~AsyncOptimizer() {
  if (impl_->owns_rows && Context::slot()) Context::slot()->has_optimizer = false;
}

void AsyncOptimizer::zero_grad() {
  for (torch::Tensor& p : impl_->parameters) p.mutable_grad() = torch::Tensor();
  Context::current().pending.zero();
  impl_->stepped = false;
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

bool AsyncOptimizer::Impl::has_dense_gradients() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const torch::Tensor& p) { return p.grad().defined(); });
}

/// One gradient per table. That of a table looked up several times is the sum, in the order of the forwards.
std::vector<AsyncOptimizer::Impl::TableGradient> AsyncOptimizer::Impl::row_gradients(
    const PendingGradients& pending) {
  std::map<TableId, int> uses;
  for (const auto& lookup : pending.lookups())
    if (lookup.rows.grad().defined())
      for (const RowGradients& part : lookup.parts) ++uses[part.table];
  std::vector<TableGradient> found;
  for (auto& [id, merge] : merges) merge->clear();
  for (const auto& lookup : pending.lookups()) {
    if (!lookup.rows.grad().defined()) continue;  // torch::autograd::grad, or a backward that threw
    const auto dim = static_cast<std::uint32_t>(lookup.rows.size(1));
    const float* const rows = lookup.rows.grad().data_ptr<float>();
    for (const RowGradients& part : lookup.parts) {
      const float* const grad = rows + part.first_row * dim;
      if (uses[part.table] == 1) {
        found.push_back({part.table, part.ids, grad, dim});
      } else {
        auto& merge = merges[part.table.value];
        if (!merge) merge = std::make_unique<GradientMerge>(dim);
        merge->add(part.ids, grad);
      }
    }
  }
  for (const auto& [id, merge] : merges)
    if (!merge->ids().empty()) found.push_back({TableId{id}, merge->ids(), merge->grads(), merge->dim()});
  return found;
}

void AsyncOptimizer::Impl::push_rows(Context& context, std::vector<TableGradient>& row_grads, double weight,
                                     double factor, float scale) {
  ParameterClient& client = context.client();
  torch::Tensor scaled;
  for (const TableGradient& g : row_grads) {
    const float* grad = g.values;
    if (scale != 1.0F) {
      scaled = torch::from_blob(const_cast<float*>(grad), {static_cast<std::int64_t>(g.ids.size() * g.dim)},
                                torch::kFloat32)
                   .mul(scale);
      grad = scaled.data_ptr<float>();
    }
    client.push(
        g.table, g.ids, grad,
        {.step = context.step,
         .weight = static_cast<float>(weight),
         .learning_rate = static_cast<float>(client.table(g.table).optimizer.learning_rate * factor)});
  }
}

bool AsyncOptimizer::gradients_finite() const {
  for (const torch::Tensor& p : impl_->parameters)
    if (p.grad().defined() && !all_finite(p.grad())) return false;
  for (const auto& lookup : Context::current().pending.lookups())
    if (lookup.rows.grad().defined() && !all_finite(lookup.rows.grad())) return false;
  return true;
}

void AsyncOptimizer::step(double weight) {
  HF_CHECK(weight > 0, "step() with a weight that is not positive");
  Context& context = Context::current();
  if (impl_->stepped && (context.pending.were_pushed() || impl_->has_dense_gradients()))
    throw ConfigError(
        "step() after step() without zero_grad(): the gradients of the earlier step are still there and "
        "would be applied "
        "again; call the optimizer's zero_grad() after each step()");
  ParameterClient& client = context.client();
  const double factor = impl_->schedule ? impl_->schedule(context.step) : 1.0;
  if (!impl_->blocks.empty()) impl_->collect_gradients();
  std::vector<Impl::TableGradient> rows = impl_->row_gradients(context.pending);
  float scale = 1.0F;
  if (impl_->clip_norm > 0) {
    const double dense = impl_->blocks.empty()
                             ? 0.0
                             : squared_norm(impl_->gradients.data_ptr<float>(), impl_->gradients.numel());
    const double sparse = std::accumulate(rows.begin(), rows.end(), 0.0, [](double sum, const auto& g) {
      return sum + squared_norm(g.values, static_cast<std::int64_t>(g.ids.size() * g.dim));
    });
    const double norm = std::sqrt(dense + sparse) / weight;
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
  impl_->push_rows(context, rows, weight, factor, scale);
  context.pending.pushed();
  impl_->stepped = true;
  client.clock(++context.step, static_cast<float>(weight));
  if (dense) client.complete_pull(dense);
}

void AsyncOptimizer::skip_step() {
  Context& context = Context::current();
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
