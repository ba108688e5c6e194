#include "model/runtime.hpp"

#include <malloc.h>

#include <cstdlib>

namespace hf {

void tune_allocator() {
#ifdef __GLIBC__
  constexpr int kMmapThresholdBytes = 32 << 20;
  constexpr int kTrimThresholdBytes = 1 << 30;
  constexpr int kTopPadBytes = 16 << 20;
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") == nullptr) mallopt(M_MMAP_THRESHOLD, kMmapThresholdBytes);
  if (std::getenv("MALLOC_TRIM_THRESHOLD_") == nullptr) mallopt(M_TRIM_THRESHOLD, kTrimThresholdBytes);
  if (std::getenv("MALLOC_TOP_PAD_") == nullptr) mallopt(M_TOP_PAD, kTopPadBytes);
#endif
  setenv("THP_MEM_ALLOC_ENABLE", "1", /*overwrite=*/0);
}

}  // namespace hf
