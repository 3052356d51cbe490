#include "superstep/base/encoding/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace superstep {
namespace {

// The fractions of the cube roots of the first 64 primes (FIPS 180-4, section 4.2.2).
constexpr std::array<std::uint32_t, 64> round_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using Schedule = std::array<std::uint32_t, 64>;

std::uint32_t big_endian(const std::byte* bytes) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word = word << 8 | static_cast<std::uint32_t>(bytes[i]);
  return word;
}

Schedule schedule_of(const std::byte* block) {
  Schedule w{};
  for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (std::size_t t = 16; t < w.size(); ++t) {
    const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  return w;
}

#if defined(__x86_64__)

// The processor's own instructions for it (Intel, "SHA Extensions", 2013; AMD since Zen): ten times as fast,
// so that weights of some GB are held against their digest in a second or two.
bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0 &&
         __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_SSE4_1) != 0;
}

[[gnu::target("sha,sse4.1")]] void take_by_instructions(std::array<std::uint32_t, 8>& state,
                                                        const std::byte* block) {
  const auto word = [&](std::size_t i) { return static_cast<int>(state[i]); };
  // In the order that the instructions have: a, b, e, f and c, d, g, h from the highest element on.
  __m128i abef = _mm_set_epi32(word(0), word(1), word(4), word(5));
  __m128i cdgh = _mm_set_epi32(word(2), word(3), word(6), word(7));
  const __m128i abef_before = abef, cdgh_before = cdgh;
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  __m128i w[4];  // the last sixteen of the schedule, four in each
  for (std::size_t i = 0; i < 4; ++i)
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), swap);
#pragma GCC unroll 16
  for (std::size_t i = 0; i < 16; ++i) {  // four rounds each
    __m128i& now = w[i % 4];
    const __m128i next = w[(i + 1) % 4], second = w[(i + 2) % 4], third = w[(i + 3) % 4];
    const __m128i sum =
        _mm_add_epi32(now, _mm_loadu_si128(reinterpret_cast<const __m128i*>(round_constants.data()) + i));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
    now = _mm_sha256msg2_epu32(
        _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(third, second, 4)), third);
  }
  std::array<std::uint32_t, 4> first{}, last{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(first.data()), _mm_add_epi32(abef, abef_before));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last.data()), _mm_add_epi32(cdgh, cdgh_before));
  state = {first[3], first[2], last[3], last[2], first[1], first[0], last[1], last[0]};
}

#endif

}  // namespace

void Sha256::take(const std::byte* block) {
#if defined(__x86_64__)
  static const bool by_instructions = has_sha_instructions();
  if (by_instructions && !plain_) return take_by_instructions(state_, block);
#endif
  const Schedule w = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t t = 0; t < w.size(); ++t) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + round_constants[t] + w[t];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::uint32_t last[] = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += last[i];
}

void Sha256::add(std::span<const std::byte> bytes) {
  const auto held = static_cast<std::size_t>(bytes_ % block_bytes);
  bytes_ += bytes.size();
  if (held > 0) {
    const std::size_t more = std::min(block_bytes - held, bytes.size());
    std::copy_n(bytes.begin(), more, rest_.begin() + static_cast<std::ptrdiff_t>(held));
    bytes = bytes.subspan(more);
    if (held + more < block_bytes) return;
    take(rest_.data());
  }
  for (; bytes.size() >= block_bytes; bytes = bytes.subspan(block_bytes)) take(bytes.data());
  std::ranges::copy(bytes, rest_.begin());
}

std::string Sha256::kept() const {
  std::string text;
  for (const std::uint32_t word : state_) text += fmt::format("{:08x}", word);
  text += fmt::format("{:016x}", bytes_);
  for (const std::byte byte : rest_) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::optional<Sha256> Sha256::from_kept(std::string_view kept) {
  Sha256 sum;
  if (kept.size() != 8 * sum.state_.size() + 16 + 2 * block_bytes) return std::nullopt;
  bool good = true;
  const auto take = [&](auto& number, std::size_t figures) {
    const auto [end, code] = std::from_chars(kept.data(), kept.data() + figures, number, 16);
    good = good && code == std::errc() && end == kept.data() + figures;
    kept.remove_prefix(figures);
  };
  for (std::uint32_t& word : sum.state_) take(word, 8);
  take(sum.bytes_, 16);
  for (std::byte& byte : sum.rest_) {
    std::uint8_t number = 0;
    take(number, 2);
    byte = static_cast<std::byte>(number);
  }
  return good ? std::optional(sum) : std::nullopt;
}

std::string Sha256::hexadecimal() {
  const std::uint64_t bits = 8 * bytes_;
  const std::byte end{0x80}, zero{};
  add({&end, 1});
  while (bytes_ % block_bytes != block_bytes - sizeof bits) add({&zero, 1});
  std::array<std::byte, sizeof bits> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(bits >> (8 * (length.size() - 1 - i)));
  add(length);
  std::string text;
  for (const std::uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace superstep
