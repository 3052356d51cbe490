#include "superstep/target/cpu/kernels/product/triangular_loops.h"

#include <type_traits>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/product/triangular_loops.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "superstep/target/cpu/kernels/core/part-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// sum - f x, of floats rounded once.
template <class V>
HWY_INLINE V less_product(V f, V x, V sum) {
  if constexpr (std::is_integral_v<hn::TFromD<hn::DFromV<V>>>)
    return hn::Sub(sum, hn::Mul(f, x));
  else
    return hn::NegMulAdd(f, x, sum);
}

// Two vectors of each row stay in registers while all of x goes by: with 4 rows 8 sums, enough to hide how
// long a multiply-add takes.
template <int rows, int vectors, class T>
HWY_INLINE void fold_columns(const Fold<T>& fold, std::int64_t j) {
  const hn::ScalableTag<T> tag;
  constexpr auto width = static_cast<std::int64_t>(hn::MaxLanes(tag));
  hn::Vec<decltype(tag)> sums[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sums[r][v] = hn::LoadU(tag, fold.y + r * fold.y_stride + j + v * width);
  for (std::int64_t p = 0; p < fold.count; ++p) {
    const T* const x = fold.x + p * fold.x_stride + j;
    const T* const f = fold.f + p * fold.f_stride;
    for (int v = 0; v < vectors; ++v) {
      const auto value = hn::LoadU(tag, x + v * width);
      for (int r = 0; r < rows; ++r)
        sums[r][v] = less_product(hn::Set(tag, f[r * fold.f_step]), value, sums[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[r][v], tag, fold.y + r * fold.y_stride + j + v * width);
}

// The last columns, fewer than a vector: lanes beyond them are neither read nor written, and each element is
// computed as in a whole vector, so that its bits do not depend on where it stands.
template <int rows, class T>
HWY_INLINE void fold_rest(const Fold<T>& fold, std::int64_t j) {
  const hn::ScalableTag<T> tag;
  const auto left = static_cast<std::size_t>(fold.n - j);
  for (int r = 0; r < rows; ++r) {
    T* const y = fold.y + r * fold.y_stride + j;
    auto sum = load_part(tag, y, left);
    for (std::int64_t p = 0; p < fold.count; ++p)
      sum = less_product(hn::Set(tag, fold.f[p * fold.f_stride + r * fold.f_step]),
                         load_part(tag, fold.x + p * fold.x_stride + j, left), sum);
    store_part(sum, tag, y, left);
  }
}

template <int rows, class T>
void fold_of(const Fold<T>& fold) {
  constexpr auto width = static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  std::int64_t j = 0;
  for (; j + 2 * width <= fold.n; j += 2 * width) fold_columns<rows, 2>(fold, j);
  for (; j + width <= fold.n; j += width) fold_columns<rows, 1>(fold, j);
  if (j < fold.n) fold_rest<rows>(fold, j);
}

template <class T>
void fold_any(const Fold<T>& fold) {
  switch (fold.rows) {
    case 1: return fold_of<1>(fold);
    case 2: return fold_of<2>(fold);
    case 3: return fold_of<3>(fold);
    default: return fold_of<4>(fold);
  }
}

void fold_f32(const Fold<float>& fold) { fold_any(fold); }
void fold_f64(const Fold<double>& fold) { fold_any(fold); }
void fold_i32(const Fold<std::int32_t>& fold) { fold_any(fold); }
void fold_i64(const Fold<std::int64_t>& fold) { fold_any(fold); }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(fold_f32);
HWY_EXPORT(fold_f64);
HWY_EXPORT(fold_i32);
HWY_EXPORT(fold_i64);

FoldLoop<float>* fold_loop(float) { return SUPERSTEP_VECTOR_FUNCTION(fold_f32); }
FoldLoop<double>* fold_loop(double) { return SUPERSTEP_VECTOR_FUNCTION(fold_f64); }
FoldLoop<std::int32_t>* fold_loop(std::int32_t) { return SUPERSTEP_VECTOR_FUNCTION(fold_i32); }
FoldLoop<std::int64_t>* fold_loop(std::int64_t) { return SUPERSTEP_VECTOR_FUNCTION(fold_i64); }

}  // namespace superstep::kernels
#endif  // HWY_ONCE
