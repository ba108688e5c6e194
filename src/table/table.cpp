#include "table/table.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <variant>

#include "core/error.hpp"
#include "table/dynamic_store.hpp"
#include "table/optimizer.hpp"
#include "table/row_loops.hpp"
#include "table/static_store.hpp"

namespace hf {
namespace {

constexpr std::size_t kBlock = 64;     // rows whose addresses are computed in one go
constexpr std::size_t kDistance = 16;  // rows whose lines are requested ahead of the one that is worked on

// Two stages: find(begin, count, records) computes addresses, a block at a time; use(begin, count, records,
// ahead) works on records[0 … count) and requests the lines of ahead[0 … count): the records kDistance rows
// later, or for the last rows themselves.
template <int Write, class Find, class Use>
void pipelined(std::size_t n, std::size_t prefetch_bytes, const Find& find, const Use& use) {
  std::array<float*, kDistance + kBlock> records;
  std::size_t found = std::min(n, kDistance);
  if (found > 0) find(0, found, records.data());
  for (std::size_t i = 0; i < found; ++i)
    if (records[i] != nullptr) prefetch_lines<Write>(records[i], prefetch_bytes);
  for (std::size_t begin = 0; begin < n;) {
    const std::size_t waiting = found - begin;
    const std::size_t fresh = std::min(n - found, kBlock);
    if (fresh > 0) {
      find(found, fresh, records.data() + kDistance);
      use(begin, fresh, records.data(), records.data() + kDistance);
      std::copy_n(records.data() + fresh, kDistance, records.data());
      found += fresh;
      begin += fresh;
    } else {
      use(begin, waiting, records.data(), records.data());
      begin += waiting;
    }
  }
}

enum class Missing : std::uint8_t { leave, create };

template <Missing Policy>
void find_block(StaticStore& store, std::span<const RowId> ids, std::size_t begin, std::size_t count,
                float** records) {
  store.find(ids.data() + begin, count, records);
}

template <Missing Policy>
void find_block(DynamicStore& store, std::span<const RowId> ids, std::size_t begin, std::size_t count,
                float** records) {
  if (begin == 0) store.prefetch_index(ids.data(), count);
  const std::size_t ahead = begin + count;
  store.prefetch_index(ids.data() + ahead, std::min(ids.size() - ahead, kBlock));
  if constexpr (Policy == Missing::create)
    store.find_or_create(ids.data() + begin, count, records);
  else
    store.find(ids.data() + begin, count, records);
}

}  // namespace

struct Table::Impl {
  using Store = std::variant<StaticStore, DynamicStore>;

  Impl(TableSpec s, std::uint32_t num_shards, std::span<const ShardId> owned)
      : spec(std::move(s)),
        record_floats(spec.dim + optimizer_slots(spec.optimizer.kind, spec.dim)),
        shards(owned.begin(), owned.end()),
        store(make_store(spec, num_shards, owned)),
        copy(select_copy(spec.dim)),
        step(select_step(spec.optimizer.kind, spec.dim)) {}

  static Store make_store(const TableSpec& spec, std::uint32_t num_shards, std::span<const ShardId> owned) {
    HF_CHECK(spec.dim > 0, "table \"" + spec.name + "\": dim ≥ 1");
    std::vector<char> seen(num_shards, 0);
    for (const ShardId s : owned) {
      HF_CHECK(s.value < num_shards, "table \"" + spec.name + "\": owned shards below num_shards");
      HF_CHECK(!std::exchange(seen[s.value], 1), "table \"" + spec.name + "\": owned shards unique");
    }
    if (spec.kind == TableKind::static_rows)
      return Store(std::in_place_type<StaticStore>, spec, num_shards, owned);
    return Store(std::in_place_type<DynamicStore>, spec, num_shards, owned);
  }

  std::size_t row_bytes() const noexcept { return std::size_t{spec.dim} * sizeof(float); }
  std::size_t record_bytes() const noexcept { return std::size_t{record_floats} * sizeof(float); }

  template <Missing Policy, class S>
  void gather(S& rows, std::span<const RowId> ids, float* out) {
    const std::size_t dim = spec.dim;
    pipelined<0>(
        ids.size(), row_bytes(),
        [&](std::size_t begin, std::size_t count, float** records) {
          find_block<Policy>(rows, ids, begin, count, records);
        },
        [&](std::size_t begin, std::size_t count, float** records, float** ahead) {
          if constexpr (std::is_same_v<S, DynamicStore> && Policy == Missing::leave)
            gather_existing(rows, ids.data() + begin, records, ahead, count, out + begin * dim);
          else
            copy(spec.dim, records, ahead, count, out + begin * dim);
        });
  }

  void gather_existing(const DynamicStore& rows, const RowId* ids, float* const* records, float* const* ahead,
                       std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; ++i, out += spec.dim) {
      if (records[i] != nullptr) {
        copy(spec.dim, records + i, ahead[i] != nullptr ? ahead + i : records + i, 1, out);
      } else {
        if (ahead[i] != nullptr) prefetch_lines<0>(ahead[i], row_bytes());
        rows.init().fill(ids[i], out);
      }
    }
  }

  template <class Use>
  void update(std::span<const RowId> ids, const Use& use) {
    std::visit(
        [&](auto& rows) {
          rows.check(ids);
          pipelined<1>(
              ids.size(), record_bytes(),
              [&](std::size_t begin, std::size_t count, float** records) {
                find_block<Missing::create>(rows, ids, begin, count, records);
              },
              use);
        },
        store);
  }

  TableSpec spec;
  std::uint32_t record_floats;
  std::vector<ShardId> shards;
  Store store;
  CopyRows copy;
  StepRows step;
};

Table::Table(TableSpec spec, std::uint32_t num_shards, std::span<const ShardId> owned)
    : impl_(std::make_unique<Impl>(std::move(spec), num_shards, owned)) {}
Table::~Table() = default;
Table::Table(Table&&) noexcept = default;
Table& Table::operator=(Table&&) noexcept = default;

const TableSpec& Table::spec() const noexcept { return impl_->spec; }
std::uint32_t Table::record_floats() const noexcept { return impl_->record_floats; }
std::span<const ShardId> Table::shards() const noexcept { return impl_->shards; }
std::uint64_t Table::rows() const noexcept {
  return std::visit([](const auto& rows) { return rows.rows(); }, impl_->store);
}
std::uint64_t Table::memory_bytes() const noexcept {
  return std::visit([](const auto& rows) { return rows.memory_bytes(); }, impl_->store);
}

void Table::gather(std::span<const RowId> ids, float* out, bool admit) {
  std::visit(
      [&](auto& rows) {
        rows.check(ids);
        if (admit)
          impl_->gather<Missing::create>(rows, ids, out);
        else
          impl_->gather<Missing::leave>(rows, ids, out);
      },
      impl_->store);
}

void Table::apply(std::span<const RowId> ids, const float* grads, const ApplyArgs& args) {
  const kernels::StepParams params(impl_->spec.optimizer, args);
  const std::uint32_t dim = impl_->spec.dim;
  impl_->update(ids, [&](std::size_t begin, std::size_t count, float** records, float** ahead) {
    impl_->step(params, dim, grads + begin * dim, records, ahead, count);
  });
}

void Table::restore(std::span<const RowId> ids, const float* records) {
  const std::size_t floats = impl_->record_floats;
  impl_->update(ids, [&](std::size_t begin, std::size_t count, float** to, float** ahead) {
    for (std::size_t i = 0; i < count; ++i) {
      prefetch_lines<1>(ahead[i], floats * sizeof(float));
      std::memcpy(to[i], records + (begin + i) * floats, floats * sizeof(float));
    }
  });
}

void Table::for_each_row(ShardId shard,
                         const std::function<void(RowId, std::span<const float> record)>& visit) const {
  const auto& owned = impl_->shards;
  HF_CHECK(std::find(owned.begin(), owned.end(), shard) != owned.end(), "a shard of this table");
  const std::size_t floats = impl_->record_floats;
  if (const auto* rows = std::get_if<StaticStore>(&impl_->store)) {
    for (std::uint64_t i = 0, n = rows->shard_rows(shard); i < n; ++i)
      visit(rows->id_at(shard, i), {rows->record_at(shard, i), floats});
  } else {
    const auto& dynamic = std::get<DynamicStore>(impl_->store);
    const auto ids = dynamic.ids_of(shard);
    for (std::size_t i = 0; i < ids.size(); ++i) visit(ids[i], {dynamic.record_at(shard, i), floats});
  }
}

}  // namespace hf
