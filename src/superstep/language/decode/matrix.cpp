#include "superstep/language/decode/matrix.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

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
    case data::BlockFormat::none: break;
  }
  return Packing::f32;
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
  const std::byte* row = matrix.row(index);
  const auto count = static_cast<std::size_t>(matrix.columns);
  if (is_in_blocks(matrix.packing))
    return data::unpack_blocks(blocks_of(matrix.packing), {row, matrix.row_bytes()}, {values, count});
  if (matrix.packing == Packing::f32) {
    std::memcpy(values, row, count * sizeof(float));
    return;
  }
  const auto* halves = reinterpret_cast<const std::uint16_t*>(row);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = matrix.packing == Packing::f16 ? f16::widen(halves[i])
                                               : std::bit_cast<float>(std::uint32_t{halves[i]} << 16);
}

}  // namespace superstep::language
