// Process-wide settings of the memory allocator that a training process wants.
// Threading: call once, early in main, before other threads exist.
#pragma once

namespace hf {

/// Tensors of a few megabytes are allocated and freed in every step. glibc serves such blocks by mmap and
/// gives them back at once, so that each step pays a page fault per 4 KiB. This keeps blocks up to 32 MiB
/// (the most that glibc allows) in the heap, never trims it, and asks LibTorch to advise huge pages for
/// tensors of 2 MiB and more. Cost: freed memory stays with the process; a process that frees large blocks
/// once should not call it. An environment that sets MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_,
/// MALLOC_TOP_PAD_ or THP_MEM_ALLOC_ENABLE keeps its own value of that setting.
void tune_allocator();

}  // namespace hf
