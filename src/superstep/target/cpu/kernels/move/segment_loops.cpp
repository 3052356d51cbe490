#include "superstep/target/cpu/kernels/move/segment_loops.h"

#include <algorithm>
#include <cstring>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/move/segment_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

// Vectors of one row that are summed side by side, in registers. Sixteen registers hold eight sums with the
// rows that come in: the end of a row's entries is met once for 64 columns, and it cannot be foretold.
constexpr std::size_t side_by_side = 8;

// ---- copies

template <class T>
HWY_INLINE void copy_row(const T* from, T* to, std::int64_t columns) {
  if (columns < width) {
    for (std::int64_t c = 0; c < columns; ++c) to[c] = from[c];
    return;
  }
  std::int64_t c = 0;
  for (; c + 4 * width <= columns; c += 4 * width)
    unrolled<4>([&](auto i)
                    SUPERSTEP_INLINE_LAMBDA { store(load(from + c + i * lanes), to + c + i * lanes); });
  for (; c + width <= columns; c += width) store(load(from + c), to + c);
  // The last vector may lie over the one before it.
  if (c < columns) store(load(from + columns - width), to + columns - width);
}

// Elements are moved four bytes at a time, whatever they are.
void copy_rows(const RowCopies& s) {
  for (std::int64_t e = 0; e < s.entries; ++e) {
    float* const to = static_cast<float*>(s.y) + e * s.stride;
    if (s.row[e] < 0)
      std::fill_n(to, s.columns, 0.0f);
    else
      copy_row(static_cast<const float*>(s.x) + s.row[e] * s.stride, to, s.columns);
  }
}

// ---- sums in registers

template <class T>
struct Row {
  const T* x;
  std::int64_t stride;
  const std::int32_t* row;
  const float* weight;
  std::int64_t entries;

  template <bool listed>
  HWY_INLINE const T* at(std::int64_t k) const {
    return x + (listed ? row[k] : k) * stride;
  }
};

template <bool weighted>
HWY_INLINE V added(V sum, V x, float weight) {
  return weighted ? hn::MulAdd(constant(weight), x, sum) : hn::Add(sum, x);
}

// Whole vectors, from column c on.
template <bool weighted, bool listed, std::size_t vectors, class T>
HWY_INLINE void sum_vectors(const Row<T>& r, std::int64_t c, T* y) {
  V sum[vectors];
  unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sum[i] = hn::Zero(f32_tag); });
  for (std::int64_t k = 0; k < r.entries; ++k) {
    const T* const from = r.template at<listed>(k) + c;
    const float weight = weighted ? r.weight[k] : 1.0f;
    unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      sum[i] = added<weighted>(sum[i], load(from + i * lanes), weight);
    });
  }
  unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA { store(sum[i], y + c + i * lanes); });
}

// `n` columns, less than a vector.
template <bool weighted, bool listed, class T>
HWY_INLINE void sum_few(const Row<T>& r, std::size_t n, T* y) {
  V sum = hn::Zero(f32_tag);
  for (std::int64_t k = 0; k < r.entries; ++k)
    sum = added<weighted>(sum, load_first(r.template at<listed>(k), n), weighted ? r.weight[k] : 1.0f);
  store_first(sum, y, n);
}

template <bool weighted, bool listed, class T>
HWY_INLINE void sum_row(const Row<T>& row, std::int64_t columns, T* y) {
  if (columns < width) {
    if (columns > 0) sum_few<weighted, listed>(row, static_cast<std::size_t>(columns), y);
    return;
  }
  constexpr std::int64_t block = static_cast<std::int64_t>(side_by_side) * width;
  std::int64_t c = 0;
  for (; c + block <= columns; c += block) sum_vectors<weighted, listed, side_by_side>(row, c, y);
  for (; c + 4 * width <= columns; c += 4 * width) sum_vectors<weighted, listed, 4>(row, c, y);
  for (; c + 2 * width <= columns; c += 2 * width) sum_vectors<weighted, listed, 2>(row, c, y);
  for (; c + width <= columns; c += width) sum_vectors<weighted, listed, 1>(row, c, y);
  // The last vector may lie over the one before it: it gives the same sums again.
  if (c < columns) sum_vectors<weighted, listed, 1>(row, columns - width, y);
}

template <bool weighted, bool listed, class T>
void sum_rows(const RowSums& s) {
  for (std::int64_t r = 0; r < s.count; ++r) {
    const std::int32_t begin = s.begin[r];
    const Row<T> row{static_cast<const T*>(s.x) + (listed ? 0 : begin * s.stride), s.stride,
                     listed ? s.row + begin : nullptr, weighted ? s.weight + begin : nullptr,
                     s.begin[r + 1] - begin};
    sum_row<weighted, listed>(row, s.columns, static_cast<T*>(s.y) + r * s.stride);
  }
}

template <class T>
void sum_rows_of(const RowSums& s) {
  if (s.weight)
    s.row ? sum_rows<true, true, T>(s) : sum_rows<true, false, T>(s);
  else
    s.row ? sum_rows<false, true, T>(s) : sum_rows<false, false, T>(s);
}

RowLoops row_loops_of(ElementType type) {
  if (type == ElementType::bf16) return {copy_rows, sum_rows_of<bf16>};
  if (type == ElementType::f64) return {copy_rows, nullptr};
  return {copy_rows, sum_rows_of<float>};
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(row_loops_of);

RowLoops row_loops(ElementType type) { return SUPERSTEP_VECTOR_FUNCTION(row_loops_of)(type); }

}  // namespace superstep::kernels
#endif
