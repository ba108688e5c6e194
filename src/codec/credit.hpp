// The receiver's word to the sender about how far it has read, where peers share no memory.
//
//   credit := consumed:u64 check:u64        check = mix64(consumed + 1)
//
// A put is not atomic in any granularity (MPI-4.1 §13.7.1 gives element-wise atomicity to accumulates only), so the
// sender may see any mixture of the bytes of an older and a newer credit. The check is a mixing function of the whole
// number: a mixture agrees with it by chance alone (2^-64 a look), also where both words are torn at the same byte. What
// does not agree is ignored: the end of the put, or the next credit, brings the number. Fresh memory, all zero, does not
// agree either.
// Threading: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "core/random.hpp"

namespace hf {

struct Credit {
  std::uint64_t consumed = 0;
  std::uint64_t check = 0;
};

constexpr Credit make_credit(std::uint64_t consumed) noexcept { return {consumed, mix64(consumed + 1)}; }

/// The number, when it is whole and lies in (known, sent]: a count only grows, and never passes what was sent.
constexpr std::optional<std::uint64_t> read_credit(const Credit& credit, std::uint64_t known,
                                                   std::uint64_t sent) noexcept {
  if (credit.check != mix64(credit.consumed + 1) || credit.consumed <= known || credit.consumed > sent)
    return {};
  return credit.consumed;
}

}  // namespace hf
