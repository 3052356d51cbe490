#include "superstep/base/random.h"

#include <cmath>
#include <numbers>

namespace superstep {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(product0)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t index, std::uint32_t purpose)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      counter_{0, purpose, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)} {}

void RandomStream::refill() {
  block_ = philox(counter_, key_);
  ++counter_[0];
  used_ = 0;
}

void RandomStream::seek(std::uint64_t word) {
  has_spare_ = false;
  counter_[0] = static_cast<std::uint32_t>(word / 4);
  used_ = 4;
  if (word % 4 == 0) return;
  refill();
  used_ = static_cast<int>(word % 4);
}

std::uint32_t RandomStream::next_u32() {
  if (used_ == 4) refill();
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint64_t RandomStream::next_u64() {
  const std::uint64_t low = next_u32();
  return low | (std::uint64_t{next_u32()} << 32);
}

namespace {

double to_unit(std::uint64_t bits) {
  return static_cast<double>(static_cast<std::int64_t>(bits >> 11)) * 0x1p-53;
}

}  // namespace

double RandomStream::uniform() { return to_unit(next_u64()); }

double RandomStream::uniform(double low, double high) { return low + (high - low) * uniform(); }

void RandomStream::fill_uniform(std::span<float> values, double low, double high) {
  const auto place = [&](std::uint64_t bits) {
    return static_cast<float>(low + (high - low) * to_unit(bits));
  };
  std::size_t i = 0;
  while (i < values.size() && used_ != 4) values[i++] = place(next_u64());
  for (; i + 2 <= values.size(); i += 2, ++counter_[0]) {
    const std::array<std::uint32_t, 4> block = philox(counter_, key_);
    values[i] = place(block[0] | std::uint64_t{block[1]} << 32);
    values[i + 1] = place(block[2] | std::uint64_t{block[3]} << 32);
  }
  if (i < values.size()) values[i] = place(next_u64());
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // Lemire's method: reject the few values that would make some results likelier than others.
  const std::uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const unsigned __int128 product = static_cast<unsigned __int128>(next_u64()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) return static_cast<std::uint64_t>(product >> 64);
  }
}

double RandomStream::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  const double angle = 2.0 * std::numbers::pi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

namespace {

std::uint64_t poisson_by_products(RandomStream& random, double mean) {
  const double limit = std::exp(-mean);
  std::uint64_t count = 0;
  for (double product = random.uniform(); product > limit; product *= random.uniform()) ++count;
  return count;
}

// W. Hoermann, "The transformed rejection method for generating Poisson random variables", Insurance:
// Mathematics and Economics 12 (1993), algorithm PTRS; valid for mean >= 10.
std::uint64_t poisson_by_rejection(RandomStream& random, double mean) {
  const double log_mean = std::log(mean);
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2.0);
  for (;;) {
    const double u = random.uniform() - 0.5, v = random.uniform();
    const double us = 0.5 - std::abs(u);
    const double k = std::floor((2.0 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return static_cast<std::uint64_t>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double accept = std::log(v * inverse_alpha / (a / (us * us) + b));
    int sign = 0;  // lgamma_r, because std::lgamma writes a global
    if (accept <= k * log_mean - mean - ::lgamma_r(k + 1.0, &sign)) return static_cast<std::uint64_t>(k);
  }
}

}  // namespace

std::uint64_t RandomStream::poisson(double mean) {
  if (!(mean > 0)) return 0;
  return mean < 10 ? poisson_by_products(*this, mean) : poisson_by_rejection(*this, mean);
}

}  // namespace superstep
