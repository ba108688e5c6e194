#include "hyperframes/embedding.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/error.hpp"
#include "model/embedding_gather.hpp"
#include "ranks/api/context.hpp"
#include "table/unique.hpp"

namespace hf {
namespace {

/// One batch of ids of one table on its way.
struct Lookup {
  std::vector<RowId> ids;  // as given
  std::vector<RowId> unique;
  std::vector<std::uint32_t> index;  // per id, into unique
  torch::Tensor rows;
  Step step = 0;
  PullHandle pull;  // into `rows`
};

}  // namespace

struct DistributedEmbeddingImpl::State {
  std::shared_ptr<LazyTable> table;
  std::int64_t dim = 0;
  UniqueIds merger;
  std::vector<std::shared_ptr<Lookup>> ahead;  // prefetched, oldest first

  std::shared_ptr<Lookup> initiate(const torch::Tensor& ids, Step step);
  std::shared_ptr<Lookup> take_ahead(const torch::Tensor& ids, Step now);
};

std::shared_ptr<Lookup> DistributedEmbeddingImpl::State::initiate(const torch::Tensor& ids, Step step) {
  Context& context = Context::current();
  if (ids.scalar_type() != torch::kInt64)
    throw DataError("DistributedEmbedding \"" + table->spec.name + "\": ids: expected int64, found " +
                    std::string(torch::toString(ids.scalar_type())));
  const torch::Tensor flat = ids.contiguous();
  auto lookup = std::make_shared<Lookup>();
  const auto* values = flat.data_ptr<std::int64_t>();
  lookup->ids.assign(values, values + flat.numel());
  const TableSpec& spec = table->spec;
  if (spec.kind == TableKind::static_rows) {
    for (const RowId id : lookup->ids)
      if (id >= spec.rows)
        throw DataError("table \"" + spec.name + "\": id " + std::to_string(static_cast<std::int64_t>(id)) +
                        " is out of range (expected 0 … " + std::to_string(spec.rows - 1) + ")");
  }
  merger.build(lookup->ids, lookup->unique, lookup->index);
  lookup->rows = torch::empty({static_cast<std::int64_t>(lookup->unique.size()), dim}, torch::kFloat32);
  lookup->step = step;
  lookup->pull = context.client().initiate_pull(context.create(*table), lookup->unique,
                                                lookup->rows.data_ptr<float>(), step, context.pull_flags(),
                                                std::make_shared<torch::Tensor>(lookup->rows));
  return lookup;
}

/// The prefetched lookup of exactly these ids. Those of earlier steps that nobody asked for are given up; those of the
/// step to come stay (they may wait for this worker's own clock, so they must not be waited for here).
std::shared_ptr<Lookup> DistributedEmbeddingImpl::State::take_ahead(const torch::Tensor& ids, Step now) {
  std::erase_if(ahead, [&](const auto& lookup) { return lookup->step < now; });
  if (ids.scalar_type() != torch::kInt64) return nullptr;
  const torch::Tensor flat = ids.contiguous();
  const auto n = static_cast<std::size_t>(flat.numel());
  for (auto at = ahead.begin(); at != ahead.end(); ++at) {
    if ((*at)->step > now && !Context::current().inference) continue;
    if ((*at)->ids.size() != n ||
        (n > 0 && std::memcmp(flat.data_ptr<std::int64_t>(), (*at)->ids.data(), n * sizeof(RowId)) != 0))
      continue;
    std::shared_ptr<Lookup> found = std::move(*at);
    ahead.erase(at);
    return found;
  }
  return nullptr;
}

DistributedEmbeddingImpl::DistributedEmbeddingImpl(std::int64_t num_embeddings, std::int64_t dim,
                                                   DistributedEmbeddingOptions options)
    : state_(std::make_shared<State>()) {
  Context& context = Context::current();
  if (dim <= 0)
    throw ConfigError("DistributedEmbedding: dim: expected a positive number, found " + std::to_string(dim));
  if (options.kind == TableKind::static_rows && num_embeddings <= 0)
    throw ConfigError("DistributedEmbedding: num_embeddings: expected a positive number, found " +
                      std::to_string(num_embeddings));
  auto table = std::make_shared<LazyTable>();
  table->spec.name =
      options.name.empty() ? "embedding_" + std::to_string(context.tables.size()) : options.name;
  context.check_table_name(table->spec.name);
  table->spec.kind = options.kind;
  table->spec.rows = options.kind == TableKind::static_rows ? static_cast<std::uint64_t>(num_embeddings) : 0;
  table->spec.dim = static_cast<std::uint32_t>(dim);
  table->spec.init = options.init;
  if (options.optimizer) table->spec.optimizer = *options.optimizer;
  table->inherits_optimizer = !options.optimizer;
  state_->table = table;
  state_->dim = dim;
  context.tables.push_back(std::move(table));
}

DistributedEmbeddingImpl::~DistributedEmbeddingImpl() = default;

const std::string& DistributedEmbeddingImpl::name() const noexcept { return state_->table->spec.name; }

void DistributedEmbeddingImpl::prefetch(const torch::Tensor& ids) {
  Context& context = Context::current();
  std::erase_if(state_->ahead, [&](const auto& lookup) { return lookup->step < context.step; });
  state_->ahead.push_back(state_->initiate(ids, context.step + 1));
}

torch::Tensor DistributedEmbeddingImpl::forward(const torch::Tensor& ids) {
  Context& context = Context::current();
  std::shared_ptr<Lookup> lookup = state_->take_ahead(ids, context.step);
  if (!lookup) lookup = state_->initiate(ids, context.step);
  context.client().complete_pull(lookup->pull);
  const bool train = torch::GradMode::is_enabled() && !context.inference;
  std::function<void()> note;
  if (train && !lookup->unique.empty()) {
    lookup->rows.requires_grad_(true);
    note = [forward = context.pending.next_forward(), table = *state_->table->id, lookup] {
      Context::current().pending.note(forward, lookup->rows, {{table, lookup->unique, 0, lookup}});
    };
  }
  const GatherColumn column{.index = lookup->index.data()};
  const torch::Tensor out = embedding_gather(
      lookup->rows, {&column, 1}, static_cast<std::int64_t>(lookup->ids.size()), lookup, std::move(note));
  std::vector<std::int64_t> shape = ids.sizes().vec();
  shape.push_back(state_->dim);
  return out.reshape(shape);
}

InferenceGuard::InferenceGuard() : previous_(Context::current().inference) {
  Context::current().inference = true;
}
InferenceGuard::~InferenceGuard() {
  if (Context::slot()) Context::slot()->inference = previous_;
}

}  // namespace hf
