#include <algorithm>
#include <functional>

#include "core/error.hpp"
#include "hyperframes/embedding.hpp"
#include "model/embedding_gather.hpp"
#include "ranks/api/context.hpp"
#include "table/unique.hpp"

namespace hf {

class DistributedEmbeddingCollection::Prepared {
 public:
  struct TablePart {
    std::vector<RowId> ids;  // several lookups of one table: their ids one after the other
    std::vector<RowId> unique;
    std::vector<std::uint32_t> inverse;
    std::uint32_t first_row = 0;  // in the group's rows
    PullHandle pull;              // into the group's rows
  };
  struct GroupPart {
    std::vector<TablePart> tables;
    torch::Tensor rows;  // [unique ids of all tables, dim]
  };
  std::vector<IdBags> inputs;
  std::size_t batch = 0;
  bool pulled = false;
  std::vector<GroupPart> groups;
  UniqueIds merger;  // of its own, so that several batches can be prepared at once
};

void DistributedEmbeddingCollection::PreparedDeleter::operator()(Prepared* p) const { delete p; }

struct DistributedEmbeddingCollection::Impl {
  struct Column {
    std::size_t input;
    std::size_t table;  // index into the group's tables
    bool mean;
  };
  struct Group {
    std::uint32_t dim = 0;
    std::vector<TableId> tables;
    std::vector<std::vector<std::size_t>> inputs_of_table;
    std::vector<Column> columns;
  };
  std::vector<Group> groups;
};

DistributedEmbeddingCollection::DistributedEmbeddingCollection(std::vector<CollectionTable> tables,
                                                               std::vector<CollectionGroup> groups)
    : impl_(std::make_unique<Impl>()) {
  Context& context = Context::current();
  std::vector<TableId> ids;
  for (const CollectionTable& t : tables) {
    auto lazy = std::make_shared<LazyTable>();
    lazy->spec = {.name = t.name,
                  .kind = t.kind,
                  .rows = t.rows,
                  .dim = t.dim,
                  .wrap_ids = false,
                  .optimizer = t.optimizer,
                  .init = t.init};
    context.check_table_name(t.name);
    context.tables.push_back(lazy);
    ids.push_back(context.create(*lazy));
  }
  std::vector<bool> taken(tables.size(), false);
  for (const CollectionGroup& g : groups) {
    Impl::Group group;
    std::vector<std::size_t> members;
    for (const CollectionLookup& lookup : g) {
      HF_CHECK(lookup.table < tables.size(), "a lookup in a table that does not exist");
      const CollectionTable& t = tables[lookup.table];
      auto at = std::find(members.begin(), members.end(), lookup.table);
      if (at == members.end()) {
        HF_CHECK(!taken[lookup.table], "a table in two groups");
        HF_CHECK(members.empty() || t.dim == group.dim, "tables of different dims in one group");
        taken[lookup.table] = true;
        group.dim = t.dim;
        group.tables.push_back(ids[lookup.table]);
        group.inputs_of_table.emplace_back();
        members.push_back(lookup.table);
        at = members.end() - 1;
      }
      const auto local = static_cast<std::size_t>(at - members.begin());
      auto& inputs = group.inputs_of_table[local];
      if (std::find(inputs.begin(), inputs.end(), lookup.input) == inputs.end())
        inputs.push_back(lookup.input);
      group.columns.push_back({lookup.input, local, lookup.mean});
    }
    impl_->groups.push_back(std::move(group));
  }
}

DistributedEmbeddingCollection::~DistributedEmbeddingCollection() = default;

DistributedEmbeddingCollection::PreparedPtr DistributedEmbeddingCollection::prepare(
    std::vector<IdBags> inputs, std::size_t batch, PreparedPtr reuse) const {
  PreparedPtr p = reuse ? std::move(reuse) : PreparedPtr(new Prepared);
  HF_CHECK(!p->pulled, "prepare() reuses a batch whose rows are on their way");
  p->inputs = std::move(inputs);
  p->batch = batch;
  p->groups.resize(impl_->groups.size());
  for (std::size_t g = 0; g < impl_->groups.size(); ++g) {
    const Impl::Group& group = impl_->groups[g];
    Prepared::GroupPart& part = p->groups[g];
    part.rows = torch::Tensor();
    part.tables.resize(group.tables.size());
    std::uint32_t rows = 0;
    for (std::size_t t = 0; t < group.tables.size(); ++t) {
      Prepared::TablePart& table = part.tables[t];
      const auto& members = group.inputs_of_table[t];
      std::span<const RowId> ids = p->inputs[members[0]].ids;
      if (members.size() > 1) {
        table.ids.clear();
        for (const std::size_t input : members)
          table.ids.insert(table.ids.end(), p->inputs[input].ids.begin(), p->inputs[input].ids.end());
        ids = table.ids;
      }
      p->merger.build(ids, table.unique, table.inverse);
      table.first_row = rows;
      if (rows > 0)
        for (std::uint32_t& index : table.inverse) index += rows;
      rows += static_cast<std::uint32_t>(table.unique.size());
    }
  }
  return p;
}

void DistributedEmbeddingCollection::initiate_pull(Prepared& batch, unsigned ahead) {
  Context& context = Context::current();
  for (std::size_t g = 0; g < impl_->groups.size(); ++g) {
    const Impl::Group& group = impl_->groups[g];
    Prepared::GroupPart& part = batch.groups[g];
    std::int64_t rows = 0;
    for (const auto& t : part.tables) rows += static_cast<std::int64_t>(t.unique.size());
    part.rows = torch::empty({rows, static_cast<std::int64_t>(group.dim)}, torch::kFloat32);
    auto* out = part.rows.data_ptr<float>();
    const auto keep_alive = std::make_shared<torch::Tensor>(part.rows);
    for (std::size_t t = 0; t < group.tables.size(); ++t)
      part.tables[t].pull = context.client().initiate_pull(
          group.tables[t], part.tables[t].unique, out + std::size_t{part.tables[t].first_row} * group.dim,
          context.step + ahead, context.pull_flags(), keep_alive);
  }
  batch.pulled = true;
}

std::vector<torch::Tensor> DistributedEmbeddingCollection::forward(Prepared& batch) {
  Context& context = Context::current();
  if (!batch.pulled) initiate_pull(batch);
  batch.pulled = false;  // also where something throws below: the pulls that are left then are dropped
  std::vector<torch::Tensor> out;
  std::vector<GatherColumn> columns;
  const bool train = torch::GradMode::is_enabled() && !context.inference;
  for (std::size_t g = 0; g < impl_->groups.size(); ++g) {
    const Impl::Group& group = impl_->groups[g];
    Prepared::GroupPart& part = batch.groups[g];
    for (auto& t : part.tables) context.client().complete_pull(t.pull);
    std::function<void()> note;
    if (train) {
      part.rows.requires_grad_(true);
      std::vector<RowGradients> noted;
      for (std::size_t t = 0; t < part.tables.size(); ++t)
        if (!part.tables[t].unique.empty())
          noted.push_back({group.tables[t], part.tables[t].unique, part.tables[t].first_row, nullptr});
      if (!noted.empty())
        note = [forward = context.pending.next_forward(), rows = part.rows, noted = std::move(noted)] {
          Context::current().pending.note(forward, rows, noted);
        };
    }
    columns.clear();
    for (const Impl::Column& c : group.columns) {
      const IdBags& bags = batch.inputs[c.input];
      const auto& members = group.inputs_of_table[c.table];
      std::size_t skip = 0;
      for (const std::size_t m : members) {
        if (m == c.input) break;
        skip += batch.inputs[m].ids.size();
      }
      columns.push_back({.index = part.tables[c.table].inverse.data() + skip,
                         .offsets = bags.offsets.empty() ? nullptr : bags.offsets.data(),
                         .weights = bags.weights.empty() ? nullptr : bags.weights.data(),
                         .pooling = c.mean ? Pooling::mean : Pooling::sum});
    }
    out.push_back(embedding_gather(part.rows, columns, static_cast<std::int64_t>(batch.batch), nullptr,
                                   std::move(note)));
  }
  return out;
}

}  // namespace hf
