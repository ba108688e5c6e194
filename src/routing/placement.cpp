#include "routing/placement.hpp"

#include <algorithm>
#include <unordered_map>

#include "core/error.hpp"

namespace hf {
namespace {

// "0, 1, 5 and 12 more"
std::string list_ranks(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > kShown) text += " and " + std::to_string(ranks.size() - kShown) + " more";
  return text;
}

// Spread: the first rank of each node in order of appearance, then the second of each, … Packed: rank order.
std::vector<std::size_t> server_order(const std::vector<RankInfo>& ranks, Placement placement) {
  std::vector<std::size_t> order(ranks.size());
  std::unordered_map<std::string, std::size_t> node_of_host, ranks_on_host;
  std::vector<std::pair<std::size_t, std::size_t>> turn_and_node(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    order[r] = r;
    const std::size_t node = node_of_host.try_emplace(ranks[r].host, node_of_host.size()).first->second;
    turn_and_node[r] = {ranks_on_host[ranks[r].host]++, node};
  }
  if (placement == Placement::spread)
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return turn_and_node[a] < turn_and_node[b]; });
  return order;
}

std::uint64_t servers_of_ratio(std::uint64_t size, std::uint64_t servers, std::uint64_t workers) {
  const std::uint64_t sum = servers + workers;
  return std::max<std::uint64_t>(1, (2 * size * servers + sum) / (2 * sum));
}

RoleMap make_map(std::vector<Role> roles) {
  RoleMap map;
  map.role_of_rank = std::move(roles);
  for (std::size_t r = 0; r < map.role_of_rank.size(); ++r) {
    const Rank rank(static_cast<std::int32_t>(r));
    if (map.is_server(rank)) map.server_ranks.push_back(rank);
    if (map.is_worker(rank)) map.worker_ranks.push_back(rank);
  }
  return map;
}

}  // namespace

const char* to_string(Role role) noexcept {
  switch (role) {
    case Role::ps:
      return "ps";
    case Role::worker:
      return "worker";
    case Role::hybrid:
      return "hybrid";
  }
  return "?";
}

RoleMap assign_roles(const std::vector<RankInfo>& ranks, const ClusterConfig& config) {
  HF_CHECK(!ranks.empty(), "at least one rank");
  std::vector<std::string> problems;
  std::vector<std::size_t> silent;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].role == RoleChoice::automatic) silent.push_back(r);
  const bool any_explicit = silent.size() < ranks.size();
  const std::size_t size = ranks.size();
  const std::string of_size = std::to_string(size) + (size == 1 ? " rank" : " ranks");

  if (any_explicit && !silent.empty())
    problems.push_back("--role: expected on every rank or on none, missing on rank " + list_ranks(silent) +
                       " of " + of_size);
  if (any_explicit && config.ps) problems.emplace_back("--role and --ps: give one of them, not both");
  if (any_explicit && config.ps_ratio)
    problems.emplace_back("--role and --ps-ratio: give one of them, not both");
  if (config.ps && config.ps_ratio) problems.emplace_back("--ps and --ps-ratio: give one of them, not both");

  std::vector<Role> roles(size, Role::worker);
  const auto place_servers = [&](std::uint64_t servers, const std::string& origin) {
    if (servers == 0) problems.push_back(origin + ": expected at least one server, found 0");
    if (servers >= size) {
      problems.push_back(origin + ": " + std::to_string(servers) + (servers == 1 ? " server" : " servers") +
                         " of " + of_size + " leave no worker (at most " + std::to_string(size - 1) +
                         "; to train on ranks that are servers too use --role hybrid)");
      return;
    }
    const auto order = server_order(ranks, config.ps_placement);
    for (std::uint64_t i = 0; i < servers; ++i) roles[order[i]] = Role::ps;
  };
  if (any_explicit) {
    for (std::size_t r = 0; r < size; ++r) {
      if (ranks[r].role == RoleChoice::ps) roles[r] = Role::ps;
      if (ranks[r].role == RoleChoice::hybrid) roles[r] = Role::hybrid;
    }
  } else if (config.ps) {
    place_servers(*config.ps, "--ps");
  } else if (config.ps_ratio) {
    const auto [p, w] = *config.ps_ratio;
    const std::string origin = "--ps-ratio " + std::to_string(p) + ":" + std::to_string(w);
    if (p == 0) problems.push_back(origin + ": expected at least 1 on the servers' side");
    if (w == 0) problems.push_back(origin + ": expected at least 1 on the workers' side");
    if (p != 0 && w != 0) place_servers(servers_of_ratio(size, p, w), origin);
  } else if (size == 1) {
    roles[0] = Role::hybrid;
  } else {
    place_servers(servers_of_ratio(size, 1, 3), "default ratio 1:3");
  }

  RoleMap map = make_map(std::move(roles));
  if (any_explicit && silent.empty()) {
    if (map.server_ranks.empty())
      problems.push_back("--role: no server among " + of_size + " (expected at least one ps or hybrid)");
    if (map.worker_ranks.empty())
      problems.push_back("--role: no worker among " + of_size + " (expected at least one worker or hybrid)");
  }
  if (map.server_ranks.size() > config.num_shards)
    problems.push_back("cluster.num_shards: expected at least one shard per server (" +
                       std::to_string(map.server_ranks.size()) + " servers), found " +
                       std::to_string(config.num_shards));
  if (!problems.empty()) {
    std::string text;
    for (const auto& p : problems) text += (text.empty() ? "" : "\n") + p;
    throw ConfigError(text);
  }
  return map;
}

}  // namespace hf
