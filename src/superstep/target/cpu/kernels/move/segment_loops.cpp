#include "superstep/target/cpu/kernels/move/segment_loops.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/move/segment_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// Vectors of one row that are summed side by side, in registers: few enough for sixteen registers with the
// rows that come in, enough that a row of 128 takes two rounds of 64 at most.
constexpr std::size_t side_by_side = 4;

template <class T>
struct Row {
  const T* x;
  std::int64_t stride;
  const std::int32_t* row;
  const float* weight;
  std::int64_t entries;
};

template <bool weighted>
HWY_INLINE V added(V sum, V x, float weight) {
  return weighted ? hn::MulAdd(constant(weight), x, sum) : hn::Add(sum, x);
}

// Whole vectors, from column c on.
template <bool weighted, std::size_t vectors, class T>
HWY_INLINE void sum_vectors(const Row<T>& r, std::int64_t c, T* y) {
  V sum[vectors];
  unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA { sum[i] = hn::Zero(f32_tag); });
  for (std::int64_t k = 0; k < r.entries; ++k) {
    const T* const from = r.x + r.row[k] * r.stride + c;
    const float weight = weighted ? r.weight[k] : 1.0f;
    unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA {
      sum[i] = added<weighted>(sum[i], load(from + i * lanes), weight);
    });
  }
  unrolled<vectors>([&](auto i) SUPERSTEP_INLINE_LAMBDA { store(sum[i], y + c + i * lanes); });
}

// The `n` columns that are left, less than a vector.
template <bool weighted, class T>
HWY_INLINE void sum_rest(const Row<T>& r, std::int64_t c, std::size_t n, T* y) {
  V sum = hn::Zero(f32_tag);
  for (std::int64_t k = 0; k < r.entries; ++k)
    sum = added<weighted>(sum, load_first(r.x + r.row[k] * r.stride + c, n), weighted ? r.weight[k] : 1.0f);
  store_first(sum, y + c, n);
}

template <bool weighted, class T>
void sum_rows(const RowSums& s) {
  constexpr auto width = static_cast<std::int64_t>(lanes),
                 block = static_cast<std::int64_t>(side_by_side) * width;
  for (std::int64_t r = 0; r < s.count; ++r) {
    const std::int32_t begin = s.begin[r];
    const Row<T> row{static_cast<const T*>(s.x), s.stride, s.row + begin,
                     weighted ? s.weight + begin : nullptr, s.begin[r + 1] - begin};
    T* const y = static_cast<T*>(s.y) + r * s.stride;
    std::int64_t c = 0;
    for (; c + block <= s.columns; c += block) sum_vectors<weighted, side_by_side>(row, c, y);
    for (; c + width <= s.columns; c += width) sum_vectors<weighted, 1>(row, c, y);
    if (c < s.columns) sum_rest<weighted>(row, c, static_cast<std::size_t>(s.columns - c), y);
  }
}

template <class T>
void sum_rows_of(const RowSums& s) {
  s.weight ? sum_rows<true, T>(s) : sum_rows<false, T>(s);
}

RowSumLoop* row_sum_loop_of(ElementType type) {
  return type == ElementType::bf16 ? sum_rows_of<bf16> : sum_rows_of<float>;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(row_sum_loop_of);

RowSumLoop* row_sum_loop(ElementType type) { return SUPERSTEP_VECTOR_FUNCTION(row_sum_loop_of)(type); }

}  // namespace superstep::kernels
#endif
