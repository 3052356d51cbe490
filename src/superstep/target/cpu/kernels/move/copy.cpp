#include "superstep/target/cpu/kernels/move/copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/move/copy.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/transpose-inl.h"
#include "superstep/target/cpu/kernels/move/copy_loops.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

template <class T>
void copy_bits_row(const void* x, void* y, const CopyRow& row) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  if (row.x_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(row.length) * sizeof(T));
  } else if (row.x_stride == 0) {
    std::fill(to, to + row.length, *from);
  } else {
    for (std::int64_t i = 0; i < row.length; ++i) to[i] = from[i * row.x_stride];
  }
}

template <class From, class To, void row(const void*, void*, const CopyRow&)>
void each_row(const From* from, To* to, const CopyRows& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i) row(from + i * rows.x_step, to + i * rows.y_step, rows.row);
}

// Of a number of bytes that is known: some instructions in place of a call.
template <std::size_t bytes, class T>
void short_rows(const T* from, T* to, const CopyRows& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i)
    std::memcpy(to + i * rows.y_step, from + i * rows.x_step, bytes);
}

template <class T>
void copy_bits_rows(const void* x, void* y, const CopyRows& rows) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  switch (rows.row.x_stride == 1 ? static_cast<std::size_t>(rows.row.length) * sizeof(T) : 0) {
    case 16: return short_rows<16>(from, to, rows);
    case 32: return short_rows<32>(from, to, rows);
    case 64: return short_rows<64>(from, to, rows);
    case 128: return short_rows<128>(from, to, rows);
    case 256: return short_rows<256>(from, to, rows);
    default: return each_row<T, T, copy_bits_row<T>>(from, to, rows);
  }
}

template <class From, class To>
HWY_INLINE To convert_one(From value) {
  return static_cast<To>(static_cast<float>(value));
}

template <class From, class To>
void convert_row(const void* x, void* y, const CopyRow& row) {
  const auto* from = static_cast<const From*>(x);
  auto* to = static_cast<To*>(y);
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t i = 0;
  if (row.x_stride == 1) {
    for (; i + width <= row.length; i += width) store(load(from + i), to + i);
    if (i < row.length) {
      const auto n = static_cast<std::size_t>(row.length - i);
      store_first(load_first(from + i, n), to + i, n);
    }
    return;
  }
  for (; i < row.length; ++i) to[i] = convert_one<From, To>(from[i * row.x_stride]);
}

template <class From, class To>
void convert_rows(const void* x, void* y, const CopyRows& rows) {
  each_row<From, To, convert_row<From, To>>(static_cast<const From*>(x), static_cast<To*>(y), rows);
}

// x has unit stride along the columns, y along the rows.
template <class T>
void transpose_bits(const void* x, void* y, const CopyTile& t) {
  const auto* from = static_cast<const T*>(x);
  auto* to = static_cast<T*>(y);
  if constexpr (sizeof(T) == 4)
    transpose(reinterpret_cast<const float*>(from), t.x_stride, reinterpret_cast<float*>(to), t.y_stride,
              t.rows, t.columns);
  else
    transpose_scalar(from, t.x_stride, to, t.y_stride, t.rows, t.columns);
}

template <class From, class To>
void transpose_converting(const void* x, void* y, const CopyTile& t) {
  const auto* from = static_cast<const From*>(x);
  auto* to = static_cast<To*>(y);
  for (std::int64_t j = 0; j < t.columns; ++j)
    for (std::int64_t i = 0; i < t.rows; ++i)
      to[j * t.y_stride + i] = convert_one<From, To>(from[i * t.x_stride + j]);
}

template <class From, class To>
CopyFunctions converting() {
  return {convert_row<From, To>, convert_rows<From, To>, transpose_converting<From, To>};
}

template <class T>
CopyFunctions bits() {
  return {copy_bits_row<T>, copy_bits_rows<T>, transpose_bits<T>};
}

CopyFunctions copy_functions(ElementType from, ElementType to) {
  if (from == to) {
    switch (size_in_bytes(from)) {
      case 1: return bits<std::uint8_t>();
      case 2: return bits<std::uint16_t>();
      case 4: return bits<std::uint32_t>();
      default: return bits<std::uint64_t>();
    }
  }
  const auto pair = [&](ElementType a, ElementType b) { return from == a && to == b; };
  if (pair(ElementType::f32, ElementType::bf16)) return converting<float, bf16>();
  if (pair(ElementType::bf16, ElementType::f32)) return converting<bf16, float>();
  if (pair(ElementType::f32, ElementType::f16)) return converting<float, f16>();
  if (pair(ElementType::f16, ElementType::f32)) return converting<f16, float>();
  if (pair(ElementType::bf16, ElementType::f16)) return converting<bf16, f16>();
  if (pair(ElementType::f16, ElementType::bf16)) return converting<f16, bf16>();
  return {};
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(copy_functions);

namespace {

struct Axis {
  std::int64_t extent, x, y;
};

// Axes of extent 1 dropped, the rest ordered by y's stride, the largest first, and merged where both
// tensors allow it.
std::vector<Axis> simplified(const StridedCopy& copy) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < copy.extents.size(); ++i)
    if (copy.extents[i] != 1) axes.push_back({copy.extents[i], copy.x_strides[i], copy.y_strides[i]});
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.y) > std::abs(b.y); });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().x == axis.x * axis.extent && merged.back().y == axis.y * axis.extent)
      merged.back() = {merged.back().extent * axis.extent, axis.x, axis.y};
    else
      merged.push_back(axis);
  }
  return merged;
}

// What the places of a walk are counted in, on the stack: the axes of a tensor of rank 16 that is tiled.
constexpr std::size_t max_outer_axes = 32;

// Calls body(x offset, y offset) for every index of the outer axes, in elements, that lies in `range` along
// the first of them.
template <class Body>
void for_each_index(const std::vector<Axis>& axes, PartRange range, const Body& body) {
  if (range.begin >= range.end) return;
  std::array<std::int64_t, max_outer_axes> index{};
  const auto extent = [&](std::size_t axis) {
    return axis == 0 ? range.end - range.begin : axes[axis].extent;
  };
  std::int64_t x = axes.empty() ? 0 : range.begin * axes[0].x, y = axes.empty() ? 0 : range.begin * axes[0].y;
  for (;;) {
    body(x, y);
    std::size_t axis = axes.size();
    for (; axis-- > 0;) {
      x += axes[axis].x, y += axes[axis].y;
      if (++index[axis] < extent(axis)) break;
      x -= extent(axis) * axes[axis].x, y -= extent(axis) * axes[axis].y;
      index[axis] = 0;
    }
    if (axis == static_cast<std::size_t>(-1)) return;
  }
}

class CopyKernel : public Kernel {
 public:
  CopyKernel(KernelInfo info, CopyFunctions functions, std::vector<Axis> outer, std::int64_t x_size,
             std::int64_t y_size)
      : Kernel(std::move(info)),
        functions_(functions),
        outer_(std::move(outer)),
        x_size_(x_size),
        y_size_(y_size) {
    info_.parts = std::clamp<std::int64_t>(first_extent(), 1, most_parts);
  }

  void run(const Arguments& arguments) const final { copy(arguments, {0, first_extent()}); }
  void run_part(const Arguments& arguments, std::int64_t part) const final {
    copy(arguments, part_range(first_extent(), part, info_.parts));
  }

 protected:
  // What lies in the range along the first outer axis.
  virtual void copy(const Arguments& arguments, PartRange range) const = 0;

  std::int64_t first_extent() const { return outer_.empty() ? 1 : outer_[0].extent; }

  template <class Body>
  void visit(const Arguments& arguments, PartRange range, const Body& body) const {
    const auto* x = static_cast<const std::byte*>(arguments.inputs[0]);
    auto* y = static_cast<std::byte*>(arguments.outputs[0]);
    for_each_index(outer_, range,
                   [&](std::int64_t xi, std::int64_t yi) { body(x + xi * x_size_, y + yi * y_size_); });
  }

  CopyFunctions functions_;
  std::vector<Axis> outer_;
  std::int64_t x_size_, y_size_;
};

// The last outer axis is gone along by the loop itself; the first one is what parts are of.
class RowCopyKernel final : public CopyKernel {
 public:
  template <class... Args>
  RowCopyKernel(CopyRow row, Args&&... args)
      : CopyKernel(std::forward<Args>(args)...), rows_{row, 1, 0, 0}, alone_(outer_.size() == 1) {
    if (outer_.empty()) return;
    rows_ = {row, outer_.back().extent, outer_.back().x, outer_.back().y};
    if (!alone_) outer_.pop_back();
  }

 private:
  void copy(const Arguments& arguments, PartRange range) const override {
    if (!alone_)
      return visit(arguments, range, [&](const void* x, void* y) { functions_.rows(x, y, rows_); });
    CopyRows rows = rows_;
    rows.count = range.end - range.begin;
    functions_.rows(static_cast<const std::byte*>(arguments.inputs[0]) + range.begin * rows.x_step * x_size_,
                    static_cast<std::byte*>(arguments.outputs[0]) + range.begin * rows.y_step * y_size_,
                    rows);
  }

  CopyRows rows_;
  bool alone_;  // the last outer axis is the first one
};

class TileCopyKernel final : public CopyKernel {
 public:
  template <class... Args>
  TileCopyKernel(CopyTile tile, Args&&... args) : CopyKernel(std::forward<Args>(args)...), tile_(tile) {}

 private:
  void copy(const Arguments& arguments, PartRange range) const override {
    visit(arguments, range, [&](const std::byte* x, std::byte* y) { tiles(x, y); });
  }

  // Tiles small enough that the lines of both sides stay in the first-level cache.
  void tiles(const std::byte* x, std::byte* y) const {
    constexpr std::int64_t edge = 64;
    for (std::int64_t i = 0; i < tile_.rows; i += edge)
      for (std::int64_t j = 0; j < tile_.columns; j += edge) {
        CopyTile part = tile_;
        part.rows = std::min(edge, tile_.rows - i);
        part.columns = std::min(edge, tile_.columns - j);
        functions_.tile(x + (i * tile_.x_stride + j) * x_size_, y + (j * tile_.y_stride + i) * y_size_, part);
      }
  }

  CopyTile tile_;
};

// Copies one element at a time where y has no contiguous axis.
class ElementCopyKernel final : public CopyKernel {
 public:
  using CopyKernel::CopyKernel;

 private:
  void copy(const Arguments& arguments, PartRange range) const override {
    const CopyRow one{1, 1};
    visit(arguments, range, [&](const void* x, void* y) { functions_.row(x, y, one); });
  }
};

std::string fault_of(const StridedCopy& copy) {
  if (copy.extents.size() != copy.x_strides.size() || copy.extents.size() != copy.y_strides.size())
    return "extents and strides differ in length";
  const bool empty = std::ranges::count(copy.extents, 0) > 0;
  for (std::size_t i = 0; i < copy.extents.size(); ++i) {
    if (copy.extents[i] < 0) return "an extent is negative";
    if (!empty && copy.extents[i] > 1 && copy.y_strides[i] == 0)
      return "the destination names an element twice";
  }
  return {};
}

class NothingToCopy final : public Kernel {
 public:
  using Kernel::Kernel;
  void run(const Arguments&) const override {}
};

std::int64_t position_of_unit_x(const std::vector<Axis>& axes) {
  for (std::size_t i = 0; i + 1 < axes.size(); ++i)
    if (axes[i].x == 1) return static_cast<std::int64_t>(i);
  return -1;
}

}  // namespace

Prepared prepare(const StridedCopy& copy) {
  if (std::string fault = fault_of(copy); !fault.empty()) return refuse("copy", fault);
  const CopyFunctions functions = HWY_DYNAMIC_DISPATCH(copy_functions)(copy.x_type, copy.y_type);
  if (!functions.row)
    return refuse("copy",
                  fmt::format("no conversion of {} to {}", name_of(copy.x_type), name_of(copy.y_type)));
  double elements = 1;
  for (std::int64_t extent : copy.extents) elements *= static_cast<double>(extent);
  const auto x_size = static_cast<std::int64_t>(size_in_bytes(copy.x_type));
  const auto y_size = static_cast<std::int64_t>(size_in_bytes(copy.y_type));
  KernelInfo info{
      .name = "copy", .bytes = elements * static_cast<double>(x_size + y_size), .inputs = 1, .outputs = 1};
  if (elements == 0) return std::make_unique<NothingToCopy>(std::move(info));

  std::vector<Axis> axes = simplified(copy);
  if (axes.size() > max_outer_axes) return refuse("copy", fmt::format("more than {} axes", max_outer_axes));
  if (axes.empty()) axes.push_back({1, 1, 1});
  const Axis inner = axes.back();
  if (inner.y != 1) {
    info.name = "copy, elements";
    return std::make_unique<ElementCopyKernel>(std::move(info), functions, axes, x_size, y_size);
  }
  const std::int64_t other = inner.x == 1 || inner.x == 0 ? -1 : position_of_unit_x(axes);
  axes.pop_back();
  if (other < 0) {
    info.name = fmt::format("copy, rows of {}", inner.extent);
    return std::make_unique<RowCopyKernel>(CopyRow{inner.extent, inner.x}, std::move(info), functions, axes,
                                           x_size, y_size);
  }
  const Axis unit = axes[static_cast<std::size_t>(other)];
  axes.erase(axes.begin() + other);
  info.name = fmt::format("copy, transposition of {} x {}", inner.extent, unit.extent);
  return std::make_unique<TileCopyKernel>(CopyTile{inner.extent, unit.extent, inner.x, unit.y},
                                          std::move(info), functions, axes, x_size, y_size);
}

}  // namespace superstep::kernels
#endif
