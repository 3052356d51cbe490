#include "superstep/edge/stream/bit_rows.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace superstep::edge {
namespace {

// Matrices of 8 x 8 (Warren, Hacker's Delight, 7-3: blocks off the diagonal change places, halved each time).
using Words = std::array<std::uint64_t, 8>;

template <std::size_t Apart>
void exchange(Words& words, int shift, std::uint64_t mask) {
  for (std::size_t i = 0; i < 8; ++i) {
    if (i & Apart) continue;
    const std::uint64_t t = ((words[i] >> shift) ^ words[i + Apart]) & mask;
    words[i + Apart] ^= t;
    words[i] ^= t << shift;
  }
}

// In every byte of the words, bit i of word k becomes bit k of word i.
void transpose_bits(Words& words) {
  exchange<4>(words, 4, 0x0f0f0f0f0f0f0f0fULL);
  exchange<2>(words, 2, 0x3333333333333333ULL);
  exchange<1>(words, 1, 0x5555555555555555ULL);
}

// Byte i of word k becomes byte k of word i.
void transpose_bytes(Words& words) {
  exchange<4>(words, 32, 0x00000000ffffffffULL);
  exchange<2>(words, 16, 0x0000ffff0000ffffULL);
  exchange<1>(words, 8, 0x00ff00ff00ff00ffULL);
}

// Eight rows of `row` bytes, at most eight bytes of each from `at` on: of the last few a part.
Words load_rows(const std::byte* rows, std::size_t row, std::size_t at, std::size_t count) {
  Words words{};
  for (std::size_t k = 0; k < 8; ++k) std::memcpy(&words[k], rows + k * row + at, count);
  return words;
}

// One byte of every element.
void rows_to_plane(const std::byte* rows, std::size_t row, std::byte* plane) {
  const auto group = [&](std::size_t at, std::size_t count) {
    Words words = load_rows(rows, row, at, count);
    transpose_bits(words);
    transpose_bytes(words);
    std::memcpy(plane + 8 * at, words.data(), 8 * count);
  };
  std::size_t at = 0;
  for (; at + 8 <= row; at += 8) group(at, 8);
  if (at < row) group(at, row - at);
}

void plane_to_rows(const std::byte* plane, std::size_t row, std::byte* rows) {
  const auto group = [&](std::size_t at, std::size_t count) {
    Words words{};
    std::memcpy(words.data(), plane + 8 * at, 8 * count);
    transpose_bytes(words);
    transpose_bits(words);
    for (std::size_t k = 0; k < 8; ++k) std::memcpy(rows + k * row + at, &words[k], count);
  };
  std::size_t at = 0;
  for (; at + 8 <= row; at += 8) group(at, 8);
  if (at < row) group(at, row - at);
}

// Planes one behind the other as elements, or elements as planes.
template <std::size_t Bytes, bool IntoElements>
void interleave(std::byte* planes, std::byte* elements, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t byte = 0; byte < Bytes; ++byte) {
      if constexpr (IntoElements)
        elements[i * Bytes + byte] = planes[byte * count + i];
      else
        planes[byte * count + i] = elements[i * Bytes + byte];
    }
}

template <bool IntoElements>
void interleave_any(std::byte* planes, std::byte* elements, std::size_t count, std::size_t bytes) {
  switch (bytes) {
    case 2: return interleave<2, IntoElements>(planes, elements, count);
    case 4: return interleave<4, IntoElements>(planes, elements, count);
    case 8: return interleave<8, IntoElements>(planes, elements, count);
    default: break;
  }
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t byte = 0; byte < bytes; ++byte) {
      std::byte &plane = planes[byte * count + i], &element = elements[i * bytes + byte];
      (IntoElements ? element : plane) = IntoElements ? plane : element;
    }
}

}  // namespace

void rows_to_elements(std::span<const std::byte> rows, std::size_t element_bytes,
                      std::span<std::byte> elements, std::vector<std::byte>& planes) {
  const std::size_t count = elements.size() / element_bytes, row = count / 8;
  if (element_bytes == 1) return rows_to_plane(rows.data(), row, elements.data());
  if (planes.size() < elements.size()) planes.resize(elements.size());
  for (std::size_t byte = 0; byte < element_bytes; ++byte)
    rows_to_plane(rows.data() + 8 * byte * row, row, planes.data() + byte * count);
  interleave_any<true>(planes.data(), elements.data(), count, element_bytes);
}

void elements_to_rows(std::span<const std::byte> elements, std::size_t element_bytes,
                      std::span<std::byte> rows, std::vector<std::byte>& planes) {
  const std::size_t count = elements.size() / element_bytes, row = count / 8;
  planes.assign(elements.begin(), elements.end());
  if (element_bytes > 1) {
    std::vector<std::byte> apart(elements.size());
    interleave_any<false>(apart.data(), planes.data(), count, element_bytes);
    planes.swap(apart);
  }
  for (std::size_t byte = 0; byte < element_bytes; ++byte)
    plane_to_rows(planes.data() + byte * count, row, rows.data() + 8 * byte * row);
}

}  // namespace superstep::edge
