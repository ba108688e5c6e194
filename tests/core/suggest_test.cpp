#include "core/suggest.hpp"

#include <gtest/gtest.h>

namespace hf {
namespace {

TEST(Suggest, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("trian", "train"), 1U);  // neighbours swapped
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
}

TEST(Suggest, NearestName) {
  const std::vector<std::string> names = {"batch_size", "epochs", "max_steps", "ps"};
  EXPECT_EQ(nearest_name("batch_sze", names), "batch_size");
  EXPECT_EQ(nearest_name("Batch-Size", names), "batch_size");
  EXPECT_EQ(nearest_name("batch", names), "batch_size");
  EXPECT_EQ(nearest_name("epoch", names), "epochs");
  EXPECT_EQ(nearest_name("pss", names), "ps");
  EXPECT_EQ(nearest_name("zzzz", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
}

}  // namespace
}  // namespace hf
