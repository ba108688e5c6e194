#include "routing/routing_table.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace hf {
namespace {

using Index = std::uint32_t;

// The owners a shard had while servers 0, 1, 2, … joined one after the other: history.back() is its owner
// among all of them, the entries before are who gave it away.
using History = std::vector<Index>;

// Ascending by mix64(key, value): a different order for each key, the same in every run.
void order_by_hash(std::vector<Index>& values, Index key) {
  std::vector<std::pair<std::uint64_t, Index>> keyed;
  keyed.reserve(values.size());
  for (const Index v : values) keyed.emplace_back(mix64(key, v), v);
  std::sort(keyed.begin(), keyed.end());
  std::transform(keyed.begin(), keyed.end(), values.begin(), [](const auto& p) { return p.second; });
}

// Server k joins: it takes floor(S / (k + 1)) shards, one at a time from the server that holds most. All
// loads stay equal up to one, and nothing moves but to the new server.
std::vector<History> join_in_order(Index servers, Index shards) {
  std::vector<History> history(shards, History{0});
  std::vector<std::vector<Index>> held(servers);
  for (Index s = 0; s < shards; ++s) held[0].push_back(s);
  for (Index k = 1; k < servers; ++k) {
    const auto donor_rank = [&](Index j) { return std::pair(held[j].size(), mix64(k, j)); };
    std::vector<Index> donors(k);
    for (Index j = 0; j < k; ++j) donors[j] = j;
    std::sort(donors.begin(), donors.end(), [&](Index a, Index b) { return donor_rank(a) > donor_rank(b); });
    // Loads differ by one at most, so taking in turn, fullest first, is taking from the fullest each time.
    std::vector<Index> take(k, 0);
    for (Index t = 0, want = shards / (k + 1); t < want; ++t) ++take[donors[t % k]];
    for (Index j = 0; j < k; ++j) {
      if (take[j] == 0) continue;
      order_by_hash(held[j], k);
      for (Index t = 0; t < take[j]; ++t) {
        const Index shard = held[j].back();
        held[j].pop_back();
        held[k].push_back(shard);
        history[shard].push_back(k);
      }
    }
  }
  return history;
}

// Gives the shards of missing servers to live ones: stable matching of shards (which prefer servers) with
// servers (which prefer shards and have a limited number of places). Its result does not depend on the order
// of proposals, and one server more or less disturbs few of the other pairs.
class Adoption {
 public:
  Adoption(std::vector<Index>& owner, const std::vector<History>& history, std::vector<Index> live,
           Index servers)
      : owner_(owner),
        history_(history),
        live_(std::move(live)),
        is_live_(servers, 0),
        load_(servers, 0),
        adopted_(servers) {
    for (const Index j : live_) is_live_[j] = 1;
    for (Index s = 0; s < owner_.size(); ++s) {
      if (is_live_[owner_[s]])
        ++load_[owner_[s]];
      else
        orphans_.push_back(s);
    }
    const auto shards = owner_.size();
    const auto count = live_.size();
    cap_ = static_cast<Index>(std::max((shards + count - 1) / count, shards * 11 / (10 * count)));
    even_ = shards < 10 * count;
  }

  void run() {
    preference_.resize(owner_.size());
    next_.assign(owner_.size(), 0);
    for (const Index s : orphans_) rank_servers(s);
    std::vector<Index> waiting(orphans_.rbegin(), orphans_.rend());
    while (!waiting.empty()) {
      const Index shard = waiting.back();
      waiting.pop_back();
      const Index server =
          preference_[shard][next_[shard]++];  // places ≥ shards: the list is never exhausted
      adopted_[server].push_back(shard);
      if (++load_[server] > cap_) waiting.push_back(release_least_wanted(server));
    }
    if (even_) level();
    for (const Index j : live_)
      for (const Index s : adopted_[j]) owner_[s] = j;
  }

 private:
  // The best live server by rendezvous hashing stands for "where the shard goes"; where it is an older server
  // than the missing owner, the shard returns to whom it came from, which is an even choice among the older
  // ones too and is what the table without the newest servers would say.
  Index first_choice(Index shard, Index rendezvous) const {
    const History& h = history_[shard];
    for (std::size_t i = h.size() - 1;; --i) {
      if (is_live_[h[i]]) return h[i];
      if (rendezvous > h[i] || i == 0) return rendezvous;
    }
  }
  void rank_servers(Index shard) {
    auto& list = preference_[shard];
    list = live_;
    order_by_hash(list, shard);
    std::reverse(list.begin(), list.end());
    const auto first = std::find(list.begin(), list.end(), first_choice(shard, list.front()));
    std::rotate(list.begin(), first, first + 1);
  }
  // A server prefers shards whose first choice it is.
  bool wants_less(Index server, Index a, Index b) const {
    const auto value = [&](Index s) {
      return std::tuple(preference_[s].front() == server, mix64(s, server), s);
    };
    return value(a) < value(b);
  }
  Index release_least_wanted(Index server) {
    auto& mine = adopted_[server];
    const auto least = std::min_element(mine.begin(), mine.end(),
                                        [&](Index a, Index b) { return wants_less(server, a, b); });
    const Index shard = *least;
    mine.erase(least);
    --load_[server];
    return shard;
  }
  // Fewer than 10 shards a server: the cap alone leaves too much room below the mean.
  void level() {
    const auto by_load = [&](Index a, Index b) { return load_[a] < load_[b]; };
    for (;;) {
      const Index low = *std::min_element(live_.begin(), live_.end(), by_load);
      const Index high = *std::max_element(live_.begin(), live_.end(), by_load);
      if (load_[high] - load_[low] <= 1) return;
      // The fuller one has an adopted shard: loads before adoption differ by one at most.
      adopted_[low].push_back(release_least_wanted(high));
      ++load_[low];
    }
  }

  std::vector<Index>& owner_;
  const std::vector<History>& history_;
  std::vector<Index> live_;
  std::vector<char> is_live_;
  std::vector<Index> load_;
  std::vector<std::vector<Index>> adopted_;
  std::vector<Index> orphans_;
  std::vector<std::vector<Index>> preference_;
  std::vector<Index> next_;
  Index cap_ = 0;
  bool even_ = false;
};

}  // namespace

RoutingTable::RoutingTable(std::span<const ServerId> live, std::uint32_t num_shards) {
  HF_CHECK(!live.empty(), "at least one live server");
  HF_CHECK(std::adjacent_find(live.begin(), live.end(), [](ServerId a, ServerId b) { return a >= b; }) ==
               live.end(),
           "live servers ascending");
  if (num_shards < live.size())
    throw ConfigError("cluster.num_shards: expected at least one shard per server (" +
                      std::to_string(live.size()) + " servers), found " + std::to_string(num_shards));
  const Index servers = live.back().value + 1;
  const auto history = join_in_order(servers, num_shards);
  std::vector<Index> owner(num_shards);
  for (Index s = 0; s < num_shards; ++s) owner[s] = history[s].back();
  if (live.size() != servers) {
    std::vector<Index> ids;
    for (const ServerId id : live) ids.push_back(id.value);
    Adoption(owner, history, std::move(ids), servers).run();
  }
  owner_.reserve(num_shards);
  for (const Index j : owner) owner_.emplace_back(j);
}

std::vector<ShardId> RoutingTable::shards_of(ServerId server) const {
  std::vector<ShardId> result;
  for (std::uint32_t s = 0; s < owner_.size(); ++s)
    if (owner_[s] == server) result.emplace_back(s);
  return result;
}

}  // namespace hf
