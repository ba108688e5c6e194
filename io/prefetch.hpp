// Reads batches ahead on a thread of its own.
//
// At most `depth` finished batches wait; their memory goes round between the consumer, the queue and the
// thread. What the inner stream throws comes out of next() after the batches read before it, and again at
// every later call. stats() describes the batches handed out so far, not those read ahead.
// Threading: next() and stats() from one thread. The destructor may run at any time: it waits for the batch
// being read.
#pragma once

#include <cstddef>
#include <memory>

#include "io/dataset.hpp"

namespace hf {

/// depth 0: the inner stream itself, no thread.
std::unique_ptr<BatchStream> prefetch(std::unique_ptr<BatchStream> inner, std::size_t depth);

}  // namespace hf
