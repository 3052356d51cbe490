#include "superstep/language/decode/byte_rows.h"

#include <cstring>

#include "superstep/base/element_type.h"
#include "superstep/base/error.h"
#include "superstep/file/weights/blocks.h"

namespace superstep::language {
namespace {

// Layouts: superstep/file/weights/blocks.h.
struct To {
  std::uint8_t* bytes;
  float *scales, *smallest;
};

float half(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return f16::widen(bits);
}

const std::uint8_t* bytes_at(const std::byte* at) { return reinterpret_cast<const std::uint8_t*>(at); }

// The lower and the upper four bits of `count` bytes.
void unpack_fours(const std::byte* packed, std::int64_t count, std::uint8_t* lower, std::uint8_t* upper) {
  const std::uint8_t* from = bytes_at(packed);
  for (std::int64_t i = 0; i < count; ++i) lower[i] = from[i] & 15, upper[i] = from[i] >> 4;
}

void unpack_q8_0(const std::byte* block, const To& to) {
  const std::uint8_t* from = bytes_at(block + 2);
  for (int i = 0; i < 32; ++i) to.bytes[i] = from[i] ^ 128;
  to.scales[0] = half(block);
}

void unpack_q4_0(const std::byte* block, const To& to) {
  unpack_fours(block + 2, 16, to.bytes, to.bytes + 16);
  to.scales[0] = half(block);
}

void unpack_q4_k(const std::byte* block, const To& to) {
  const float scale = half(block), low = half(block + 2);
  for (int group = 0; group < 8; ++group) {
    const data::GroupScale of = data::group_scale(block + 4, group);
    to.scales[group] = scale * static_cast<float>(of.scale);
    to.smallest[group] = low * static_cast<float>(of.smallest);
  }
  for (int pair = 0; pair < 4; ++pair)
    unpack_fours(block + 16 + 32 * pair, 32, to.bytes + 64 * pair, to.bytes + 64 * pair + 32);
}

void unpack_q6_k(const std::byte* block, const To& to) {
  const float scale = half(block + 208);
  for (int group = 0; group < 16; ++group)
    to.scales[group] = scale * static_cast<float>(static_cast<std::int8_t>(block[192 + group]));
  for (int part = 0; part < 2; ++part) {
    std::uint8_t* bytes = to.bytes + 128 * part;
    unpack_fours(block + 64 * part, 64, bytes, bytes + 64);
    const std::uint8_t* upper = bytes_at(block + 128 + 32 * part);
    for (int two = 0; two < 4; ++two)
      for (int i = 0; i < 32; ++i)
        bytes[32 * two + i] =
            static_cast<std::uint8_t>(bytes[32 * two + i] | (upper[i] >> (2 * two) & 3) << 4);
  }
}

struct Form {
  ByteForm form;
  std::size_t block_bytes;
  void (*unpack)(const std::byte*, const To&);
};

Form form_of(Packing packing) {
  switch (packing) {
    case Packing::q8_0: return {{32, 32, 128, 255, false}, 34, unpack_q8_0};
    case Packing::q4_0: return {{32, 32, 8, 15, false}, 18, unpack_q4_0};
    case Packing::q4_k: return {{32, 256, 0, 15, true}, 144, unpack_q4_k};
    case Packing::q6_k: return {{16, 256, 32, 63, false}, 210, unpack_q6_k};
    default: throw Error(ErrorCode::internal, "these weights are in no blocks");
  }
}

}  // namespace

ByteForm byte_form(Packing packing) { return form_of(packing).form; }

void unpack_bytes(const Matrix& matrix, std::int64_t row, std::int64_t first, std::int64_t count,
                  std::uint8_t* bytes, float* scales, float* smallest) {
  const Form of = form_of(matrix.packing);
  const std::int64_t block = of.form.block, groups = block / of.form.group;
  const std::byte* from = matrix.row(row) + static_cast<std::size_t>(first / block) * of.block_bytes;
  To to{bytes, scales, smallest};
  for (std::int64_t i = 0; i < count; i += block, from += of.block_bytes) {
    of.unpack(from, to);
    to.bytes += block, to.scales += groups, to.smallest += groups;
  }
}

}  // namespace superstep::language
