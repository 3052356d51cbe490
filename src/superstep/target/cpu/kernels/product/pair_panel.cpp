#include "superstep/target/cpu/kernels/product/pair_panel.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/pair_panel.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/transpose-inl.h"
#include "superstep/target/cpu/kernels/product/pair_panel_loops.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto vector_width = static_cast<std::int64_t>(lanes);
constexpr std::int64_t block_width = 64;  // of a block of rows in the first-level cache

// Vectors of bf16 in the lower halves of 32-bit lanes.
HWY_INLINE VU narrow_bits(const bf16* p) {
  const hn::Rebind<std::uint16_t, F> half;
  return hn::PromoteTo(u32_tag, hn::LoadU(half, reinterpret_cast<const std::uint16_t*>(p)));
}
HWY_INLINE VU narrow_bits(const float* p) { return round_to_bf16(load(p)); }

template <class T>
HWY_INLINE std::uint32_t narrow_one(T value) {
  return bf16(static_cast<float>(value)).bits;
}
HWY_INLINE std::uint32_t narrow_one(bf16 value) { return value.bits; }

// Two rows side by side in the halves of 32-bit lanes. `odd` is null behind the last row of an odd depth.
template <class T>
HWY_INLINE void interleave_rows(const T* even, const T* odd, std::int64_t width, std::uint32_t* to) {
  std::int64_t i = 0;
  if (!odd) {
    for (; i + vector_width <= width; i += vector_width) hn::StoreU(narrow_bits(even + i), u32_tag, to + i);
    for (; i < width; ++i) to[i] = narrow_one(even[i]);
    return;
  }
  for (; i + vector_width <= width; i += vector_width)
    hn::StoreU(hn::Or(narrow_bits(even + i), hn::ShiftLeft<16>(narrow_bits(odd + i))), u32_tag, to + i);
  for (; i < width; ++i) to[i] = narrow_one(even[i]) | narrow_one(odd[i]) << 16;
}

// `count` contiguous elements as bf16.
template <class T>
HWY_INLINE void narrow_row(const T* from, std::int64_t count, bf16* to) {
  if constexpr (sizeof(T) == sizeof(bf16)) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(bf16));
  } else {
    std::int64_t i = 0;
    for (; i + vector_width <= count; i += vector_width) store(load(from + i), to + i);
    for (; i < count; ++i) to[i] = bf16(static_cast<float>(from[i]));
  }
}

// Pairs [pair][width] from rows that are contiguous along the width.
template <class T>
void panels_from_rows(const PairPanel& p, const void* source, void* result) {
  const auto* from = static_cast<const T*>(source);
  auto* to = static_cast<std::uint32_t*>(result);
  for (std::int64_t d = 0; d < p.depth; d += 2, from += 2 * p.depth_stride, to += p.width)
    interleave_rows<T>(from, d + 1 < p.depth ? from + p.depth_stride : nullptr, p.width, to);
}

// Starts of blocks of `size` that cover `total`, the last one overlapping the one before it where it would be
// shorter; one short block when the total is short.
template <class Body>
HWY_INLINE void for_each_block(std::int64_t total, std::int64_t size, const Body& body) {
  if (total < size) return body(std::int64_t{0}, total);
  for (std::int64_t first = 0; first < total; first += size) body(std::min(first, total - size), size);
}

// Pairs [pair][width] from columns that are contiguous along the depth: a pair is one 32-bit element of a
// transposition.
template <class T>
void panels_from_columns(const PairPanel& p, const void* source, void* result) {
  constexpr std::int64_t deep = 2 * vector_width;
  alignas(64) bf16 rows[vector_width * deep];
  auto* to = static_cast<float*>(result);
  for_each_block(p.width, vector_width, [&](std::int64_t first, std::int64_t width) {
    for (std::int64_t d = 0; d < p.depth; d += deep) {
      const std::int64_t count = std::min(deep, p.depth - d);
      for (std::int64_t i = 0; i < width; ++i) {
        narrow_row(static_cast<const T*>(source) + (first + i) * p.width_stride + d, count, rows + i * deep);
        if (count % 2 != 0) rows[i * deep + count] = bf16();
      }
      transpose(reinterpret_cast<const float*>(rows), vector_width, to + d / 2 * p.width + first, p.width,
                width, (count + 1) / 2);
    }
  });
}

// Columns [width][depth] from columns: rounded and padded alone.
template <class T>
void columns_from_columns(const PairPanel& p, const void* source, void* result) {
  const std::int64_t depth = padded_depth(p.depth);
  auto* to = static_cast<bf16*>(result);
  for (std::int64_t w = 0; w < p.width; ++w, to += depth) {
    narrow_row(static_cast<const T*>(source) + w * p.width_stride, p.depth, to);
    if (depth != p.depth) to[p.depth] = bf16();
  }
}

// Columns [width][depth] from rows: a block of rows interleaved, then its pairs transposed.
template <class T>
void columns_from_rows(const PairPanel& p, const void* source, void* result) {
  alignas(64) std::uint32_t pairs[vector_width * block_width];
  auto* to = static_cast<float*>(result);
  const std::int64_t all_pairs = (p.depth + 1) / 2;
  for (std::int64_t w = 0; w < p.width; w += block_width) {
    const std::int64_t width = std::min(block_width, p.width - w);
    for_each_block(all_pairs, vector_width, [&](std::int64_t first, std::int64_t count) {
      const T* from = static_cast<const T*>(source) + 2 * first * p.depth_stride + w;
      for (std::int64_t i = 0; i < count; ++i, from += 2 * p.depth_stride)
        interleave_rows<T>(from, 2 * (first + i) + 1 < p.depth ? from + p.depth_stride : nullptr, width,
                           pairs + i * block_width);
      transpose(reinterpret_cast<const float*>(pairs), block_width, to + w * all_pairs + first, all_pairs,
                count, width);
    });
  }
}

// Any strides, element by element.
template <class T>
void from_anywhere(const PairPanel& p, const void* source, void* result) {
  const bool panels = p.order == PairPanel::Order::panels;
  const std::int64_t depth = padded_depth(p.depth);
  auto* to = static_cast<bf16*>(result);
  for (std::int64_t d = 0; d < depth; ++d)
    for (std::int64_t w = 0; w < p.width; ++w) {
      const T* from = static_cast<const T*>(source) + d * p.depth_stride + w * p.width_stride;
      to[panels ? (d / 2 * p.width + w) * 2 + d % 2 : w * depth + d] =
          d < p.depth ? bf16(static_cast<float>(*from)) : bf16();
    }
}

template <class T>
PairPanelFunction* function_of(const PairPanel& p) {
  const bool panels = p.order == PairPanel::Order::panels;
  if (p.width == 1 && p.depth_stride == 1) return columns_from_columns<T>;  // in either order
  if (p.width_stride == 1 || p.width == 1) return panels ? panels_from_rows<T> : columns_from_rows<T>;
  if (p.depth_stride == 1) return panels ? panels_from_columns<T> : columns_from_columns<T>;
  return from_anywhere<T>;
}

PairPanelFunction* pair_panel_function(const PairPanel& p) {
  return p.type == ElementType::f32 ? function_of<float>(p) : function_of<bf16>(p);
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(pair_panel_function);

namespace {

class PairPanelKernel final : public Kernel {
 public:
  PairPanelKernel(KernelInfo info, const PairPanel& panel, PairPanelFunction* function)
      : Kernel(std::move(info)), panel_(panel), function_(function) {}

  void run(const Arguments& arguments) const override {
    function_(panel_, arguments.inputs[0], arguments.outputs[0]);
  }

 private:
  PairPanel panel_;
  PairPanelFunction* function_;
};

}  // namespace

Prepared prepare(const PairPanel& p) {
  if (p.depth < 1 || p.width < 1) return refuse("pairs", "an extent is not positive");
  if (p.type != ElementType::f32 && p.type != ElementType::bf16)
    return refuse("pairs", std::string("no pairs from ") + name_of(p.type));
  const auto elements = static_cast<double>(p.depth * p.width);
  KernelInfo info{
      .name = fmt::format("{} of pairs, {} x {}", p.order == PairPanel::Order::panels ? "panel" : "columns",
                          p.depth, p.width),
      .bytes = elements * (2 + static_cast<double>(size_in_bytes(p.type))),
      .inputs = 1,
      .outputs = 1};
  return std::make_unique<PairPanelKernel>(std::move(info), p,
                                           SUPERSTEP_VECTOR_FUNCTION(pair_panel_function)(p));
}

}  // namespace superstep::kernels
#endif
