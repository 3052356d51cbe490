#include "superstep/target/cpu/kernels/product/widened_product.h"

#include <algorithm>

#include "superstep/target/cpu/kernels/core/caches.h"
#include "superstep/target/cpu/kernels/core/pair_rate.h"
#include "superstep/target/cpu/kernels/core/vector_targets.h"
#include "superstep/target/cpu/kernels/product/batch_reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/widened_product.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto vector_width = static_cast<std::int64_t>(lanes);

// The halves of each lane: the even element of a pair is the lower one.
HWY_INLINE void widen_pairs(const std::uint32_t* pairs, std::size_t n, float* even, float* odd) {
  const VU bits = hn::BitCast(u32_tag, load_first(reinterpret_cast<const float*>(pairs), n));
  store_first(hn::BitCast(f32_tag, hn::ShiftLeft<16>(bits)), even, n);
  store_first(hn::BitCast(f32_tag, hn::And(bits, hn::Set(u32_tag, 0xffff0000))), odd, n);
}

void widen_rows(const std::uint32_t* pairs, std::int64_t stride, std::int64_t m, std::int64_t k, float* to) {
  for (std::int64_t depth = 0; depth < k; depth += 2, pairs += stride, to += 2 * m) {
    std::int64_t i = 0;
    for (; i + vector_width <= m; i += vector_width) widen_pairs(pairs + i, lanes, to + i, to + m + i);
    if (i < m) widen_pairs(pairs + i, static_cast<std::size_t>(m - i), to + i, to + m + i);
  }
}

void widen_columns(const bf16* from, std::int64_t stride, std::int64_t n, std::int64_t k, float* to) {
  for (std::int64_t column = 0; column < n; ++column, from += stride, to += k) {
    std::int64_t i = 0;
    for (; i + vector_width <= k; i += vector_width) store(load(from + i), to + i);
    if (i < k) {
      const auto rest = static_cast<std::size_t>(k - i);
      store_first(load_first(from + i, rest), to + i, rest);
    }
  }
}

WideningLoops choose_widening_loops() { return {widen_rows, widen_columns}; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(choose_widening_loops);

WideningLoops widening_loops() { return (*SUPERSTEP_VECTOR_FUNCTION(choose_widening_loops))(); }

namespace {

constexpr std::int64_t float_bytes = sizeof(float);
// Of A and of B widened: they stay in the first-level cache, or A hardly leaves it. Of rooms from 16 to 64 kB
// these were fastest over the shapes of convolutions (a Xeon with AVX-512 and 48 kB), by up to a fifth.
constexpr std::int64_t most_a_bytes = 24 * 1024, most_b_bytes = 12 * 1024;
constexpr std::int64_t most_depth = 256, depth_unit = 16;
constexpr std::uint64_t most_together = 64;
constexpr std::int64_t most_rows = 128;
// From so many columns on multiplying takes longer than widening A and, in f32, than pairs do.
constexpr std::int64_t least_columns = 12;

std::int64_t a_room() {
  return instruction_set() >= InstructionSet::avx512 ? most_a_bytes
                                                     : std::min(most_a_bytes, first_level_cache() / 2);
}

// Blocks of nearly one depth.
std::int64_t depth_of_blocks(const ProductShape& s) {
  const std::int64_t fitting = a_room() / (s.m * float_bytes) / depth_unit * depth_unit;
  const std::int64_t most = std::clamp(fitting, depth_unit, most_depth);
  const std::int64_t number = (s.k + most - 1) / most, even = (s.k + number - 1) / number;
  return std::min(s.k, (even + depth_unit - 1) / depth_unit * depth_unit);
}

std::uint64_t products_together(const ProductShape& s, std::int64_t depth) {
  if (depth < s.k) return 1;
  const std::int64_t fitting = std::min(a_room() / (s.m * s.k * float_bytes), most_depth / s.k);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(fitting), 1, most_together);
}

std::int64_t columns_of_blocks(const ProductShape& s, std::int64_t block_depth) {
  constexpr std::int64_t unit = 6;  // that generated code has in registers at once
  return std::min(s.n, std::max(unit, most_b_bytes / (block_depth * float_bytes) / unit * unit));
}

}  // namespace

bool widens(const ProductShape& s) {
  const bool pairs =
      s.type == ElementType::bf16 && s.pairs && !s.b_pairs && s.k % 2 == 0 && s.b_k_stride == 1;
  return pairs && s.m <= most_rows && s.n >= least_columns && instruction_set() >= InstructionSet::avx2 &&
         !multiplies_pairs_fast();
}

WidenedProduct::WidenedProduct(const ProductShape& shape)
    : s_(shape),
      loops_(widening_loops()),
      depth_(depth_of_blocks(shape)),
      columns_(
          columns_of_blocks(shape, depth_ * static_cast<std::int64_t>(products_together(shape, depth_)))),
      together_(products_together(shape, depth_)) {}

std::expected<std::shared_ptr<const WidenedProduct>, std::string> WidenedProduct::prepare(
    const ProductShape& shape) {
  std::shared_ptr<WidenedProduct> product(new WidenedProduct(shape));
  if (std::string fault = product->make_products(); !fault.empty()) return std::unexpected(fault);
  return product;
}

// A kind that does not occur is the whole one.
std::string WidenedProduct::make_products() {
  for (const std::int64_t n : {columns_, s_.n % columns_})
    for (const std::int64_t k : {depth_, s_.k % depth_})
      for (const bool later : {false, true}) {
        ProductShape shape{.m = s_.m, .n = n > 0 ? n : columns_, .k = k > 0 ? k : depth_, .a_stride = s_.m};
        shape.b_n_stride = shape.k;
        shape.c_stride = s_.c_stride;
        shape.accumulate = later || s_.accumulate;
        auto product = BatchReduceProduct::prepare(shape, ProductMaker::libxsmm);
        if (!product) return product.error();
        products_.push_back(*product);
      }
  return {};
}

void WidenedProduct::add(const Piece& piece, const std::byte* a, const std::byte* b, float* c) const {
  alignas(64) float rows[most_a_bytes / float_bytes];
  alignas(64) float columns[most_b_bytes / float_bytes];
  std::uint64_t row_offsets[most_together], column_offsets[most_together];
  const auto count = static_cast<std::int64_t>(piece.count);
  for (std::int64_t i = 0; i < count; ++i) {
    row_offsets[i] = static_cast<std::uint64_t>(i * s_.m * piece.depth * float_bytes);
    column_offsets[i] = static_cast<std::uint64_t>(i * columns_ * piece.depth * float_bytes);
    const auto* pairs = reinterpret_cast<const std::uint32_t*>(a + piece.a_offsets[i]);
    loops_.rows(pairs + piece.first / 2 * s_.a_stride, s_.a_stride, s_.m, piece.depth,
                rows + i * s_.m * piece.depth);
  }
  for (std::int64_t column = 0; column < s_.n; column += columns_) {
    const std::int64_t n = std::min(columns_, s_.n - column);
    for (std::int64_t i = 0; i < count; ++i)
      loops_.columns(
          reinterpret_cast<const bf16*>(b + piece.b_offsets[i]) + column * s_.b_n_stride + piece.first,
          s_.b_n_stride, n, piece.depth, columns + i * columns_ * piece.depth);
    const int kind = (n < columns_ ? 4 : 0) + (piece.depth < depth_ ? 2 : 0) + (piece.later ? 1 : 0);
    products_[static_cast<std::size_t>(kind)](rows, columns, c + column * s_.c_stride, piece.count,
                                              row_offsets, column_offsets);
  }
}

void WidenedProduct::operator()(const void* a, const void* b, float* c, std::uint64_t count,
                                const std::uint64_t* a_offsets, const std::uint64_t* b_offsets) const {
  for (std::uint64_t i = 0; i < count; i += together_)
    for (std::int64_t first = 0; first < s_.k; first += depth_)
      add({.a_offsets = a_offsets + i,
           .b_offsets = b_offsets + i,
           .count = std::min(together_, count - i),
           .first = first,
           .depth = std::min(depth_, s_.k - first),
           .later = i > 0 || first > 0},
          static_cast<const std::byte*>(a), static_cast<const std::byte*>(b), c);
}

}  // namespace superstep::kernels
#endif
