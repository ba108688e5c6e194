#include "routing/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"

namespace hf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<RankInfo> on_hosts(const std::vector<std::string>& hosts) {
  std::vector<RankInfo> ranks;
  for (const auto& h : hosts) ranks.push_back({h, RoleChoice::automatic});
  return ranks;
}
std::vector<RankInfo> with_roles(const std::vector<RoleChoice>& roles) {
  std::vector<RankInfo> ranks;
  for (const auto r : roles) ranks.push_back({"a", r});
  return ranks;
}
std::size_t servers(std::size_t size, const ClusterConfig& config) {
  return assign_roles(std::vector<RankInfo>(size, RankInfo{"a", RoleChoice::automatic}), config)
      .server_ranks.size();
}
std::string problems(const std::vector<RankInfo>& ranks, const ClusterConfig& config) {
  try {
    assign_roles(ranks, config);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "";
}

TEST(Placement, defaults) {
  const RoleMap one = assign_roles(on_hosts({"a"}), {});
  EXPECT_THAT(one.role_of_rank, ElementsAre(Role::hybrid));
  EXPECT_TRUE(one.is_server(Rank(0)) && one.is_worker(Rank(0)));
  EXPECT_EQ(servers(2, {}), 1U);
  EXPECT_EQ(servers(3, {}), 1U);
  EXPECT_EQ(servers(4, {}), 1U);
  EXPECT_EQ(servers(8, {}), 2U);
  EXPECT_EQ(servers(16, {}), 4U);
}

TEST(Placement, ratioRounds) {
  ClusterConfig config;
  config.ps_ratio = {{1, 2}};
  EXPECT_EQ(servers(3, config), 1U);
  EXPECT_EQ(servers(4, config), 1U);  // 1.33
  EXPECT_EQ(servers(5, config), 2U);  // 1.67
  config.ps_ratio = {{1, 100}};
  EXPECT_EQ(servers(10, config), 1U);
  config.ps_ratio = {{1, 1}};
  EXPECT_EQ(servers(2, config), 1U);
}

TEST(Placement, spreadTakesNodesInTurnAndPackedTheFirstRanks) {
  ClusterConfig config;
  config.ps = 3;
  const auto ranks = on_hosts({"a", "a", "a", "b", "b", "b"});
  const RoleMap spread = assign_roles(ranks, config);
  EXPECT_THAT(spread.server_ranks, ElementsAre(Rank(0), Rank(1), Rank(3)));
  EXPECT_THAT(spread.worker_ranks, ElementsAre(Rank(2), Rank(4), Rank(5)));
  config.ps_placement = Placement::packed;
  EXPECT_THAT(assign_roles(ranks, config).server_ranks, ElementsAre(Rank(0), Rank(1), Rank(2)));
  config.ps_placement = Placement::spread;
  config.ps = 2;
  EXPECT_THAT(assign_roles(on_hosts({"b", "a", "b", "a"}), config).server_ranks,
              ElementsAre(Rank(0), Rank(1)));
}

TEST(Placement, explicitRoles) {
  const RoleMap map = assign_roles(with_roles({RoleChoice::worker, RoleChoice::hybrid, RoleChoice::ps}), {});
  EXPECT_THAT(map.role_of_rank, ElementsAre(Role::worker, Role::hybrid, Role::ps));
  EXPECT_THAT(map.server_ranks, ElementsAre(Rank(1), Rank(2)));
  EXPECT_THAT(map.worker_ranks, ElementsAre(Rank(0), Rank(1)));
  EXPECT_STREQ(to_string(map.role_of_rank[1]), "hybrid");
}

TEST(Placement, refusals) {
  ClusterConfig ps;
  ps.ps = 1;
  ClusterConfig ratio;
  ratio.ps_ratio = {{1, 1}};
  ClusterConfig both = ps;
  both.ps_ratio = {{1, 1}};
  const auto four = on_hosts({"a", "a", "a", "a"});
  EXPECT_THAT(problems(with_roles({RoleChoice::ps, RoleChoice::automatic, RoleChoice::worker}), {}),
              HasSubstr("missing on rank 1"));
  EXPECT_THAT(problems(with_roles({RoleChoice::ps, RoleChoice::worker}), ps), HasSubstr("--role and --ps:"));
  EXPECT_THAT(problems(with_roles({RoleChoice::ps, RoleChoice::worker}), ratio),
              HasSubstr("--role and --ps-ratio"));
  EXPECT_THAT(problems(four, both), HasSubstr("--ps and --ps-ratio"));
  EXPECT_THAT(problems(with_roles({RoleChoice::worker, RoleChoice::worker}), {}), HasSubstr("no server"));
  EXPECT_THAT(problems(with_roles({RoleChoice::ps, RoleChoice::ps}), {}), HasSubstr("no worker"));
  ps.ps = 4;
  EXPECT_THAT(problems(four, ps), HasSubstr("4 servers of 4 ranks leave no worker"));
  ps.ps = 0;
  EXPECT_THAT(problems(four, ps), HasSubstr("at least one server"));
  ratio.ps_ratio = {{9, 1}};
  EXPECT_THAT(problems(four, ratio), HasSubstr("leave no worker"));
  ratio.ps_ratio = {{0, 0}};
  EXPECT_THAT(problems(four, ratio), HasSubstr("servers' side"));
  ps.ps = 3;
  ps.num_shards = 2;
  EXPECT_THAT(problems(four, ps), HasSubstr("num_shards"));
}

TEST(Placement, listsAllProblemsAtOnce) {
  ClusterConfig config;
  config.ps = 1;
  config.ps_ratio = {{1, 1}};
  const std::string text = problems(with_roles({RoleChoice::ps, RoleChoice::automatic}), config);
  EXPECT_THAT(text, HasSubstr("missing on rank"));
  EXPECT_THAT(text, HasSubstr("--role and --ps:"));
  EXPECT_THAT(text, HasSubstr("--role and --ps-ratio"));
  EXPECT_THAT(text, HasSubstr("--ps and --ps-ratio"));
}

}  // namespace
}  // namespace hf
