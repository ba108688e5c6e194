// The error ladder: compile time → type → HF_CHECK (a bug in this program) → an exception for the outside world
// (hyperframes/error.hpp).
// Threading: HF_CHECK may be used anywhere.
#pragma once

#include <string>

#include "hyperframes/error.hpp"

namespace hf::detail {
[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               const std::string& message);
}

/// Always on. HF_CHECK(condition, "what was expected").
#define HF_CHECK(condition, message)                                         \
  do {                                                                       \
    if (!(condition)) [[unlikely]]                                           \
      ::hf::detail::check_failed(#condition, __FILE__, __LINE__, (message)); \
  } while (false)

/// Debug builds only.
#ifdef NDEBUG
#define HF_ASSERT(condition) \
  do {                       \
  } while (false)
#else
#define HF_ASSERT(condition) HF_CHECK(condition, "")
#endif
