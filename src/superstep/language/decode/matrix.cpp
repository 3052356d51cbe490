#include "superstep/language/decode/matrix.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "superstep/language/decode/products.h"

namespace superstep::language {
namespace {

data::BlockFormat blocks_of(Packing packing) {
  switch (packing) {
    case Packing::q8_0: return data::BlockFormat::q8_0;
    case Packing::q4_0: return data::BlockFormat::q4_0;
    case Packing::q4_k: return data::BlockFormat::q4_k;
    case Packing::q6_k: return data::BlockFormat::q6_k;
    default: return data::BlockFormat::none;
  }
}

Packing packing_of(data::BlockFormat blocks) {
  switch (blocks) {
    case data::BlockFormat::q8_0: return Packing::q8_0;
    case data::BlockFormat::q4_0: return Packing::q4_0;
    case data::BlockFormat::q4_k: return Packing::q4_k;
    case data::BlockFormat::q6_k: return Packing::q6_k;
    default: return Packing::f32;
  }
}

std::size_t element_bytes(Packing packing) { return packing == Packing::f32 ? 4 : 2; }

Matrix over(const data::Weight& weight, Packing packing, const std::byte* data,
            std::shared_ptr<const void> owner) {
  return {weight.shape[0], weight.shape[1], packing, data, std::move(owner)};
}

}  // namespace

bool is_in_blocks(Packing packing) { return blocks_of(packing) != data::BlockFormat::none; }

std::size_t Matrix::row_bytes() const {
  if (!is_in_blocks(packing)) return static_cast<std::size_t>(columns) * element_bytes(packing);
  const data::BlockSize size = data::block_size(blocks_of(packing));
  return static_cast<std::size_t>(columns / size.values) * size.bytes;
}

Matrix matrix_of(const Tensor& f32) {
  const auto kept = std::make_shared<const Tensor>(f32);
  return {f32.shape()[0], f32.shape()[1], Packing::f32, kept->bytes(), kept};
}

Matrix matrix_of(const data::Weight& weight) {
  if (weight.shape.rank() != 2 || !is_floating(weight.element))
    throw Error(ErrorCode::unsupported, fmt::format("'{}' {} of {} is no matrix of weights", weight.name,
                                                    to_string(weight.shape), weight.type_name()));
  const bool is_multiplied_packed = blocks_of(packing_of(weight.blocks)) == weight.blocks;
  if (!is_multiplied_packed) return matrix_of(weight.tensor());  // of 8 bits each, as f32
  if (weight.blocks != data::BlockFormat::none)
    return over(weight, packing_of(weight.blocks), weight.bytes.data(), weight.owner);
  if (weight.element == ElementType::f64) return matrix_of(weight.tensor().converted(ElementType::f32));
  const Packing packing = weight.element == ElementType::f32   ? Packing::f32
                          : weight.element == ElementType::f16 ? Packing::f16
                                                               : Packing::bf16;
  const bool aligned = std::bit_cast<std::uintptr_t>(weight.bytes.data()) % element_bytes(packing) == 0;
  if (!weight.bytes.empty() && aligned) return over(weight, packing, weight.bytes.data(), weight.owner);
  const auto kept = std::make_shared<const Tensor>(weight.tensor());
  return over(weight, packing, kept->bytes(), kept);
}

void unpack_row(const Matrix& matrix, std::int64_t index, float* values) {
  unpack_part(matrix, index, 0, matrix.columns, values);
}

namespace {

// Where numbers of a row begin: `number` at the start of a block, where there are blocks.
std::size_t offset_of(const Matrix& matrix, std::int64_t number) {
  if (!is_in_blocks(matrix.packing)) return static_cast<std::size_t>(number) * element_bytes(matrix.packing);
  const data::BlockSize block = data::block_size(blocks_of(matrix.packing));
  return static_cast<std::size_t>(number / block.values) * block.bytes;
}

}  // namespace

void prefetch_part(const Matrix& matrix, std::int64_t index, std::int64_t first, std::int64_t count) {
  constexpr std::size_t line = 64;
  constexpr int second_cache = 2;  // of what __builtin_prefetch calls locality
  const std::byte* row = matrix.row(index);
  const std::size_t end = offset_of(matrix, first + count);
  for (std::size_t at = offset_of(matrix, first); at < end; at += line)
    __builtin_prefetch(row + at, 0, second_cache);
}

void unpack_part(const Matrix& matrix, std::int64_t index, std::int64_t first, std::int64_t count,
                 float* values) {
  const std::byte* row = matrix.row(index);
  const auto size = static_cast<std::size_t>(count);
  if (is_in_blocks(matrix.packing)) {
    const data::BlockFormat format = blocks_of(matrix.packing);
    const std::size_t begin = offset_of(matrix, first), end = offset_of(matrix, first + count);
    return data::unpack_blocks(format, {row + begin, end - begin}, {values, size});
  }
  if (matrix.packing == Packing::f32) {
    std::memcpy(values, reinterpret_cast<const float*>(row) + first, size * sizeof(float));
    return;
  }
  const auto* halves = reinterpret_cast<const std::uint16_t*>(row) + first;
  (matrix.packing == Packing::f16 ? widen_f16 : widen_bf16)(halves, count, values);
}

}  // namespace superstep::language
