#include "model/blas.hpp"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace hf {
namespace {

TEST(Blas, IsNamed) {
  const BlasInfo info = blas_info();
  EXPECT_FALSE(info.name.empty());
  // The name says whether it is the generic one.
  EXPECT_EQ(info.generic, info.name.rfind("reference", 0) == 0 || info.name.rfind("unknown", 0) == 0)
      << info.name;
}

TEST(Blas, ThreadsReachLibTorchAndOpenBlas) {
  const int before = at::get_num_threads();
  for (const int threads : {2, 1}) {
    set_compute_threads(threads);
    EXPECT_EQ(at::get_num_threads(), threads);
    if (openblas_threads() != 0) {
      EXPECT_EQ(openblas_threads(), threads);
    }
  }
  set_compute_threads(0);
  EXPECT_EQ(at::get_num_threads(), 1);
  set_compute_threads(before);
}

}  // namespace
}  // namespace hf
