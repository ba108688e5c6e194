// Which BLAS does LibTorch multiply with, and on how many threads?
// Threading: set_compute_threads is process-wide; call it before training starts.
#pragma once

#include <string>

namespace hf {

struct BlasInfo {
  std::string name;  ///< for instance "OpenBLAS 0.3.29 … (/usr/lib/…/libblas.so.3)"
  bool generic;      ///< the reference implementation, some thirty times slower: worth a warning at start
};

/// Looks at the library that provides sgemm_ to this process, and where LibTorch has its BLAS inside, at
/// LibTorch.
BlasInfo blas_info();

/// Sets the threads of LibTorch's own loops and of the BLAS. Both, because an OpenBLAS built on pthreads has
/// a thread count of its own that LibTorch does not touch: it would use every core whatever LibTorch was
/// told.
void set_compute_threads(int threads);

/// Threads that OpenBLAS will use; 0 where the BLAS is not OpenBLAS.
int openblas_threads();

}  // namespace hf
