#include "comm/launch.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace hf {
namespace {

using Map = std::map<std::string, std::string>;

const Map kQuiet = {{"OMPI_MCA_btl", "self,sm"}};
const Map kOneNode = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"PMIX_RANK", "1"}};

Map with(Map map, const std::string& key, const std::string& value) {
  map[key] = value;
  return map;
}

TEST(Launch, OneNodeNeedsNoNetwork) {
  EXPECT_EQ(mpi_settings(kOneNode, {}), kQuiet);
  EXPECT_EQ(mpi_settings({}, {}), kQuiet) << "without a launcher";
}

TEST(Launch, SeveralNodesAndOtherLaunchersAreLeftAlone) {
  EXPECT_TRUE(mpi_settings(with(kOneNode, "OMPI_COMM_WORLD_LOCAL_SIZE", "2"), {}).empty());
  EXPECT_TRUE(mpi_settings({{"OMPI_COMM_WORLD_SIZE", "4"}}, {}).empty());
  EXPECT_TRUE(mpi_settings({{"PMIX_RANK", "0"}}, {}).empty());
  EXPECT_TRUE(mpi_settings({{"PMI_RANK", "0"}}, {}).empty());
}

TEST(Launch, TheUsersChoiceStays) {
  for (const std::string key : {"btl", "pml", "mtl", "osc"}) {
    EXPECT_TRUE(mpi_settings(with(kOneNode, "OMPI_MCA_" + key, "ucx"), {}).empty()) << key;
    EXPECT_TRUE(mpi_settings(kOneNode, {{key, "ucx,tcp"}}).empty()) << key;
    EXPECT_EQ(mpi_settings(kOneNode, {{key, "^ucx,uct"}}), kQuiet) << "only leaves out: " << key;
  }
  EXPECT_TRUE(mpi_settings(kOneNode, {{"btl", "^sm"}}).empty());
  EXPECT_TRUE(mpi_settings(kOneNode, {{"btl", "^uct, self"}}).empty());
  EXPECT_EQ(mpi_settings(with(kOneNode, "OMPI_MCA_coll", "^han"), {{"coll", "tuned"}}), kQuiet);
}

TEST(Launch, ParameterFilesAreReadAsOpenMpiDoes) {
  const Map values = parse_parameter_file(
      "# btl = tcp\n\nbtl_base_warn_component_unused=0\nmtl = ^ofi\n btl=^uct,openib,ofi  # why\nosc = "
      "\"^ucx\"\nnonsense\n");
  EXPECT_EQ(values, (Map{{"btl_base_warn_component_unused", "0"},
                         {"mtl", "^ofi"},
                         {"btl", "^uct,openib,ofi"},
                         {"osc", "^ucx"}}));
}

}  // namespace
}  // namespace hf
