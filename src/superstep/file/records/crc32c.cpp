#include "superstep/file/records/crc32c.h"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <nmmintrin.h>
#endif

namespace superstep::data {
namespace {

// The polynomial, its bits turned round.
constexpr std::uint32_t polynomial = 0x82f63b78;

// What a byte, and the bytes behind it up to seven, do to the sum: eight at a time.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables made_tables() {
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? polynomial : 0);
    tables[0][i] = sum;
  }
  for (std::size_t t = 1; t < 8; ++t)
    for (std::size_t i = 0; i < 256; ++i)
      tables[t][i] = tables[t - 1][i] >> 8 ^ tables[0][tables[t - 1][i] & 0xff];
  return tables;
}

constexpr Tables tables = made_tables();

std::uint32_t by_tables(std::uint32_t sum, const std::byte* at, std::size_t count) {
  for (; count >= 8; count -= 8, at += 8) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < 8; ++i) {
      const auto byte = std::to_integer<std::uint32_t>(at[i]) ^ (i < 4 ? sum >> (8 * i) & 0xff : 0);
      next ^= tables[7 - i][byte];
    }
    sum = next;
  }
  for (; count > 0; --count, ++at)
    sum = sum >> 8 ^ tables[0][(sum ^ std::to_integer<std::uint32_t>(*at)) & 0xff];
  return sum;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t sum, const std::byte* at,
                                                               std::size_t count) {
  std::uint64_t wide = sum;
  for (; count >= 8; count -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  sum = static_cast<std::uint32_t>(wide);
  for (; count > 0; --count, ++at) sum = _mm_crc32_u8(sum, std::to_integer<unsigned char>(*at));
  return sum;
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~0u, bytes.data(), bytes.size());
#endif
  return ~by_tables(~0u, bytes.data(), bytes.size());
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const std::uint32_t sum = crc32c(bytes);
  return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

}  // namespace superstep::data
