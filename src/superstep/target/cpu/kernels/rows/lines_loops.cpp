#include "superstep/target/cpu/kernels/rows/lines_loops.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/rows/lines_loops.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr std::int64_t block = 64;  // lines side by side

// What numbers are compared and summed as.
template <class T>
float widened(T value) requires(std::is_same_v<T, bf16> || std::is_same_v<T, f16>) {
  return static_cast<float>(value);
}
template <class T>
T widened(T value) requires(!std::is_same_v<T, bf16> && !std::is_same_v<T, f16>) {
  return value;
}

// ---- sums

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

template <class T>
T narrowed(Sum<T> sum) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return T(static_cast<float>(sum));
  else
    return static_cast<T>(sum);
}

// Lines first, first + 1, ... of a bundle, `count` of them, with a sum each; `dense`: one beside the other.
template <bool dense, class T>
void sum_lines(const RunningSum& s, const LineBundle& b, std::int64_t first, std::int64_t count) {
  const Lines& l = s.lines;
  const std::int64_t x_stride = dense ? 1 : b.across.x, y_stride = dense ? 1 : b.across.y;
  const T* x = static_cast<const T*>(b.x) + first * x_stride;
  T* y = static_cast<T*>(b.y) + first * y_stride;
  Sum<T> sums[block] = {};
  for (std::int64_t i = 0; i < l.length; ++i) {
    const std::int64_t at = s.reverse ? l.length - 1 - i : i;
    const T* from = x + at * l.x_step;
    T* to = y + at * l.y_step;
    for (std::int64_t k = 0; k < count; ++k) {
      const auto before = sums[k], after = before + static_cast<Sum<T>>(widened(from[k * x_stride]));
      to[k * y_stride] = narrowed<T>(s.exclusive ? before : after);
      sums[k] = after;
    }
  }
}

// As many contiguous lines at a time as hide behind one another how long an addition takes, with their sums
// in registers: four cycles, two additions a cycle.
constexpr std::int64_t contiguous_lines = 8;

template <class T>
void sum_contiguous_lines(const RunningSum& s, const LineBundle& b, std::int64_t first) {
  const T* x = static_cast<const T*>(b.x) + first * b.across.x;
  T* y = static_cast<T*>(b.y) + first * b.across.y;
  const std::int64_t length = s.lines.length, step = s.reverse ? -1 : 1, x_line = b.across.x,
                     y_line = b.across.y;
  Sum<T> sums[contiguous_lines] = {};
  for (std::int64_t i = 0, at = s.reverse ? length - 1 : 0; i < length; ++i, at += step)
    unrolled<contiguous_lines>([&](auto k) SUPERSTEP_INLINE_LAMBDA {
      constexpr std::int64_t line = decltype(k)::value;
      const Sum<T> before = sums[line], after = before + static_cast<Sum<T>>(widened(x[line * x_line + at]));
      y[line * y_line + at] = narrowed<T>(s.exclusive ? before : after);
      sums[line] = after;
    });
}

template <class T>
void run_bundle(const RunningSum& s, const LineBundle& b) {
  std::int64_t done = 0;
  if (s.lines.x_step == 1 && s.lines.y_step == 1)
    for (; done + contiguous_lines <= b.across.extent; done += contiguous_lines)
      sum_contiguous_lines<T>(s, b, done);
  // One after the other where they are contiguous, else side by side.
  const std::int64_t together = s.lines.x_step == 1 ? 4 : block;
  const bool dense = b.across.x == 1 && b.across.y == 1;
  for (std::int64_t first = done; first < b.across.extent; first += together) {
    const std::int64_t count = std::min(together, b.across.extent - first);
    dense ? sum_lines<true, T>(s, b, first, count) : sum_lines<false, T>(s, b, first, count);
  }
}

// ---- places of extremes

// As NumPy's argmax and argmin: NaN, which compares with nothing, is more extreme than any number.
template <bool largest, bool last, class W>
bool is_better(W candidate, W champion) {
  if constexpr (last)
    return !(largest ? candidate < champion : candidate > champion) &&
           (champion == champion || candidate != candidate);
  return !(largest ? candidate <= champion : candidate >= champion) && champion == champion;
}

// Of a contiguous line, by the champions of every 16th element.
template <bool largest, bool last, class T>
std::int64_t place_in_line(const T* x, std::int64_t length) {
  constexpr std::int64_t champions = 16;
  using W = decltype(widened(*x));
  W value[champions];
  std::int32_t row[champions];
  std::int64_t rest = length / champions * champions;
  std::fill_n(value, champions, widened(x[0]));
  std::fill_n(row, champions, -1);  // the first element of the line
  for (std::int64_t i = 0; i < rest; i += champions)
    for (std::int64_t k = 0; k < champions; ++k) {
      const W candidate = widened(x[i + k]);
      const bool better = is_better<largest, last>(candidate, value[k]);
      value[k] = better ? candidate : value[k];
      row[k] = better ? static_cast<std::int32_t>(i) : row[k];
    }
  W best = widened(x[0]);
  std::int64_t place = 0;
  for (std::int64_t k = 0; k < champions; ++k) {
    if (row[k] < 0) continue;
    const std::int64_t at = row[k] + k;
    const bool same = value[k] == best || (value[k] != value[k] && best != best);
    const bool equal = same && (last ? at > place : at < place);
    if (equal || is_better<largest, false>(value[k], best)) best = value[k], place = at;
  }
  for (; rest < length; ++rest)
    if (is_better<largest, last>(widened(x[rest]), best)) best = widened(x[rest]), place = rest;
  return place;
}

template <bool largest, bool last, bool dense, class T>
void places_of_lines(const Lines& l, const LineBundle& b, std::int64_t first, std::int64_t count) {
  using W = decltype(widened(T()));
  const std::int64_t stride = dense ? 1 : b.across.x;
  const T* x = static_cast<const T*>(b.x) + first * stride;
  auto* y = static_cast<std::int64_t*>(b.y) + first * b.across.y;
  W value[block];
  std::int32_t place[block] = {};
  for (std::int64_t k = 0; k < count; ++k) value[k] = widened(x[k * stride]);
  for (std::int32_t i = 1; i < static_cast<std::int32_t>(l.length); ++i) {
    const T* from = x + i * l.x_step;
    for (std::int64_t k = 0; k < count; ++k) {
      const W candidate = widened(from[k * stride]);
      const bool better = is_better<largest, last>(candidate, value[k]);
      value[k] = better ? candidate : value[k];
      place[k] = better ? i : place[k];
    }
  }
  for (std::int64_t k = 0; k < count; ++k) y[k * b.across.y] = place[k];
}

template <bool largest, bool last, class T>
void places_of_bundle(const Lines& l, const LineBundle& b) {
  if (l.x_step == 1)
    for (std::int64_t k = 0; k < b.across.extent; ++k)
      static_cast<std::int64_t*>(b.y)[k * b.across.y] =
          place_in_line<largest, last>(static_cast<const T*>(b.x) + k * b.across.x, l.length);
  else
    for (std::int64_t first = 0; first < b.across.extent; first += block) {
      const std::int64_t count = std::min(block, b.across.extent - first);
      b.across.x == 1 ? places_of_lines<largest, last, true, T>(l, b, first, count)
                      : places_of_lines<largest, last, false, T>(l, b, first, count);
    }
}

template <class T>
void run_bundle(const ExtremePlace& p, const LineBundle& b) {
  if (p.largest)
    p.last ? places_of_bundle<true, true, T>(p.lines, b) : places_of_bundle<true, false, T>(p.lines, b);
  else
    p.last ? places_of_bundle<false, true, T>(p.lines, b) : places_of_bundle<false, false, T>(p.lines, b);
}

// ---- the largest few

template <class W>
struct Element {
  W value;
  std::int64_t place;
};

// As NumPy sorts: NaN is larger than any number.
template <bool largest, class W>
bool comes_before(W a, W b) {
  return largest ? !(a <= b) && b == b : !(a >= b) && a == a;
}

// Up to so many are kept in order while a line is gone through: most elements are then met once and left.
constexpr std::int64_t few = 32;

// The best of the elements that were offered, in order; of equals the one that came first.
template <bool largest, class W>
struct Best {
  Element<W>* elements;
  std::int64_t count, filled = 0;

  W worst() const { return elements[count - 1].value; }
  HWY_INLINE void offer(W value, std::int64_t place) {
    if (filled == count && !comes_before<largest>(value, worst())) return;
    std::int64_t at = filled < count ? filled++ : count - 1;
    for (; at > 0 && comes_before<largest>(value, elements[at - 1].value); --at)
      elements[at] = elements[at - 1];
    elements[at] = {value, place};
  }
};

// Offers what of 16 contiguous elements, or 8, is better than the worst that is kept, or compares with
// nothing; goes on until fewer are left. Returns how far it came.
template <bool largest>
std::int64_t offer_vectors(Best<largest, float>& best, const float* x, std::int64_t i, std::int64_t length) {
  constexpr auto width = static_cast<std::int64_t>(lanes);
  for (; i + width <= length; i += width) {
    const V v = load(x + i), worst = constant(best.worst());
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(f32_tag, largest ? hn::Le(v, worst) : hn::Ge(v, worst), bytes);
    const unsigned left = bytes[0] | unsigned{bytes[1]} << 8, all = (1u << width) - 1;
    for (unsigned bits = ~left & all; bits != 0; bits &= bits - 1) {
      const std::int64_t at = i + std::countr_zero(bits);
      best.offer(x[at], at);
    }
  }
  return i;
}

template <bool largest, class T, class W>
void keep_best(const T* x, const ExtremeElements& e, Element<W>* elements) {
  const Lines& l = e.lines;
  Best<largest, W> best{elements, e.count};
  std::int64_t i = 0;
  for (; i < e.count; ++i) best.offer(widened(x[i * l.x_step]), i);
  if constexpr (std::is_same_v<T, float>)
    if (l.x_step == 1) i = offer_vectors(best, x, i, l.length);
  for (; i < l.length; ++i) best.offer(widened(x[i * l.x_step]), i);
}

template <class T, class W>
void sort_all(const T* x, const ExtremeElements& e, Element<W>* elements) {
  const Lines& l = e.lines;
  const auto before = [largest = e.largest](const Element<W>& a, const Element<W>& c) {
    const auto ahead = [largest](W v, W w) {
      return largest ? comes_before<true>(v, w) : comes_before<false>(v, w);
    };
    return ahead(a.value, c.value) || (!ahead(c.value, a.value) && a.place < c.place);
  };
  for (std::int64_t i = 0; i < l.length; ++i) elements[i] = {widened(x[i * l.x_step]), i};
  std::partial_sort(elements, elements + e.count, elements + l.length, before);
}

template <class T>
void run_bundle(const ExtremeElements& e, const LineBundle& b) {
  using W = decltype(widened(T()));
  if (e.count == 0) return;
  const Lines& l = e.lines;
  auto* elements = static_cast<Element<W>*>(b.scratch);
  for (std::int64_t k = 0; k < b.across.extent; ++k) {
    const T* x = static_cast<const T*>(b.x) + k * b.across.x;
    if (e.count > few)
      sort_all(x, e, elements);
    else
      e.largest ? keep_best<true>(x, e, elements) : keep_best<false>(x, e, elements);
    T* y = static_cast<T*>(b.y) + k * b.across.y;
    auto* z = static_cast<std::int64_t*>(b.z) + k * b.across.z;
    for (std::int64_t i = 0; i < e.count; ++i) {
      y[i * l.y_step] = x[elements[i].place * l.x_step];
      z[i * l.z_step] = elements[i].place;
    }
  }
}

// ---- which of them

template <class Specification>
RunLines<Specification> run_of(const Specification& specification) {
  switch (specification.lines.type) {
    case ElementType::f32: return run_bundle<float>;
    case ElementType::f64: return run_bundle<double>;
    case ElementType::bf16: return run_bundle<bf16>;
    case ElementType::f16: return run_bundle<f16>;
    case ElementType::i32: return run_bundle<std::int32_t>;
    case ElementType::i64: return run_bundle<std::int64_t>;
    default: return nullptr;
  }
}

RunLines<RunningSum> running_sum(const RunningSum& sum) { return run_of(sum); }
RunLines<ExtremePlace> extreme_place(const ExtremePlace& place) { return run_of(place); }
RunLines<ExtremeElements> extreme_elements(const ExtremeElements& elements) { return run_of(elements); }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(running_sum);
HWY_EXPORT(extreme_place);
HWY_EXPORT(extreme_elements);

RunLines<RunningSum> run_lines(const RunningSum& sum) { return SUPERSTEP_VECTOR_FUNCTION(running_sum)(sum); }
RunLines<ExtremePlace> run_lines(const ExtremePlace& place) {
  return SUPERSTEP_VECTOR_FUNCTION(extreme_place)(place);
}
RunLines<ExtremeElements> run_lines(const ExtremeElements& elements) {
  return SUPERSTEP_VECTOR_FUNCTION(extreme_elements)(elements);
}

}  // namespace superstep::kernels
#endif
