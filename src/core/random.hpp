// Counter-based random numbers: a value is a pure function of (key, counter), so that any rank can compute any
// element without state. Mixer: the finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
// Number Generators, OOPSLA 2014).
// Threading: pure functions.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace hf {

constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Two keys into one.
constexpr std::uint64_t mix64(std::uint64_t a, std::uint64_t b) noexcept { return mix64(mix64(a) ^ b); }

/// Uniform in [0, 1): 24 bits, exact in float.
constexpr float uniform_float(std::uint64_t random_bits) noexcept {
  return static_cast<float>(random_bits >> 40) * 0x1p-24F;
}
/// Uniform in [0, 1): 53 bits.
constexpr double uniform_double(std::uint64_t random_bits) noexcept {
  return static_cast<double>(random_bits >> 11) * 0x1p-53;
}

/// Standard normal from two independent words (Box–Muller).
inline double normal_double(std::uint64_t a, std::uint64_t b) noexcept {
  const double u = 1.0 - uniform_double(a);
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * uniform_double(b));
}

/// A sequential generator over the same mixer; satisfies UniformRandomBitGenerator.
class SplitMix64 {
 public:
  using result_type = std::uint64_t;
  explicit SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}
  result_type operator()() noexcept { return mix64(state_++ * 0x9e3779b97f4a7c15ULL); }
  static constexpr result_type min() noexcept { return 0; }
  static constexpr result_type max() noexcept { return ~0ULL; }
  std::uint64_t state() const noexcept { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace hf
