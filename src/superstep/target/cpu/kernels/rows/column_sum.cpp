#include "superstep/target/cpu/kernels/rows/column_sum.h"

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/rows/column_sum.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// Channels of one vector, `n` of them.
template <class T>
HWY_INLINE void sum_vector(const T* p, std::int64_t stride, std::int64_t columns, std::size_t n, float* sum) {
  V a = hn::Zero(f32_tag), b = a, c = a, d = a;
  std::int64_t i = 0;
  for (; i + 4 <= columns; i += 4, p += 4 * stride) {
    a = hn::Add(a, load_first(p, n));
    b = hn::Add(b, load_first(p + stride, n));
    c = hn::Add(c, load_first(p + 2 * stride, n));
    d = hn::Add(d, load_first(p + 3 * stride, n));
  }
  for (; i < columns; ++i, p += stride) a = hn::Add(a, load_first(p, n));
  store_first(hn::Add(load_first(sum, n), hn::Add(hn::Add(a, b), hn::Add(c, d))), sum, n);
}

template <class T>
void sum_columns(const void* p, std::int64_t stride, std::int64_t columns, std::int64_t channels,
                 float* sum) {
  const T* from = static_cast<const T*>(p);
  constexpr auto width = static_cast<std::int64_t>(lanes);
  std::int64_t c = 0;
  for (; c + width <= channels; c += width) sum_vector(from + c, stride, columns, lanes, sum + c);
  if (c < channels) sum_vector(from + c, stride, columns, static_cast<std::size_t>(channels - c), sum + c);
}

ColumnSum* column_sum_of(ElementType type) {
  return type == ElementType::bf16 ? sum_columns<bf16> : sum_columns<float>;
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(column_sum_of);

ColumnSum* column_sum(ElementType type) { return SUPERSTEP_VECTOR_FUNCTION(column_sum_of)(type); }

}  // namespace superstep::kernels
#endif
