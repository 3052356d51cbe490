// Winograd's transforms from squares of positions to values at pairs of points. Included once for each
// instruction set, as vector-inl.h, which explains the guard.
#if defined(SUPERSTEP_WINOGRAD_PLANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SUPERSTEP_WINOGRAD_PLANES_INL_H
#undef SUPERSTEP_WINOGRAD_PLANES_INL_H
#else
#define SUPERSTEP_WINOGRAD_PLANES_INL_H
#endif

#include "superstep/target/cpu/kernels/winograd/winograd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

// body(row, y[row]) for y = M x, a pair of rows at a time: x(column) is asked for once a pair.
template <class M, class X, class Body>
HWY_INLINE void multiply(const X& x, const Body& body) {
  unrolled<M::value.rows>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
    if constexpr (M::value.mirrored(row)) {
      const V equal = row_sum<M, row, Part::equal>(x), opposite = row_sum<M, row, Part::opposite>(x);
      body(row, hn::Add(equal, opposite));
      body(std::integral_constant<std::size_t, row + 1>(), hn::Sub(equal, opposite));
    } else if constexpr (!is_second<M>(row)) {
      body(row, row_sum<M, row, Part::all>(x));
    }
  });
}

// planes = M square M^T over one vector: a row of M over columns, then M over what that gave. Rows of the
// square are read again for every row of M, so that nothing in between needs memory.
template <class M, class Planes>
HWY_INLINE void fill_planes(const float* square, std::int64_t row_stride, std::int64_t column_stride,
                            const Planes& planes) {
  constexpr std::size_t in = M::value.columns, out = M::value.rows;
  const auto store_row = [&](auto row, const V* sums) SUPERSTEP_INLINE_LAMBDA {
    multiply<M>([&](auto column) SUPERSTEP_INLINE_LAMBDA { return sums[column]; },
                [&](auto column, V v) SUPERSTEP_INLINE_LAMBDA {
                  planes.put(static_cast<std::int64_t>(row * out + column), v);
                });
  };
  unrolled<out>([&](auto row) SUPERSTEP_INLINE_LAMBDA {
    if constexpr (!is_second<M>(row)) {
      V first[in], second[in];
      unrolled<in>([&](auto column) SUPERSTEP_INLINE_LAMBDA {
        const auto position = [&](auto from) SUPERSTEP_INLINE_LAMBDA {
          return load(square + static_cast<std::int64_t>(from) * row_stride +
                      static_cast<std::int64_t>(column) * column_stride);
        };
        if constexpr (M::value.mirrored(row)) {
          const V equal = row_sum<M, row, Part::equal>(position),
                  opposite = row_sum<M, row, Part::opposite>(position);
          first[column] = hn::Add(equal, opposite);
          second[column] = hn::Sub(equal, opposite);
        } else {
          first[column] = row_sum<M, row, Part::all>(position);
        }
      });
      store_row(row, first);
      if constexpr (M::value.mirrored(row)) store_row(std::integral_constant<std::size_t, row + 1>(), second);
    }
  });
}

// Planes of `T`, f32 or bf16, each column's channels contiguous.
template <class T>
struct PlainPlanes {
  using Element = T;
  T* first;
  std::int64_t stride;

  static HWY_INLINE T* place(const WinogradRun& run, std::int64_t stretch, std::int64_t element) {
    return static_cast<T*>(run.planes) + stretch * run.plane_run_stride + element;
  }
  HWY_INLINE void put(std::int64_t plane, V v) const { store(v, first + plane * stride); }
};

HWY_INLINE VU bf16_bits(V v) {
#if HWY_TARGET == HWY_AVX3
  if (converts_bf16) {
    const hn::Rebind<std::uint16_t, F> half;
    hn::Vec<decltype(half)> narrow;
    asm("vcvtneps2bf16 %1, %0" : "=v"(narrow.raw) : "v"(v.raw));
    return hn::PromoteTo(u32_tag, narrow);
  }
#endif
  return round_to_bf16(v);
}

// Planes of bf16, two neighbouring columns side by side: the vector goes to every other element.
struct PairPlanes {
  std::uint16_t* first;
  std::int64_t stride;
  std::int64_t odd, count;  // which half; elements of the vector that are stored

  PairPlanes(const WinogradRun& run, std::int64_t stretch, std::int64_t element, std::int64_t n)
      : stride(run.plane_stride), odd((run.first_column + stretch) % 2), count(n) {
    const std::int64_t pair = (run.first_column + stretch) / 2;
    first = static_cast<std::uint16_t*>(run.planes) + 2 * (pair * run.plane_run_stride + element);
  }
  HWY_INLINE void put(std::int64_t plane, V v) const {
    std::uint16_t* to = first + plane * stride;
    const VU bits = bf16_bits(v);
#if HWY_TARGET == HWY_AVX3
    const hn::Repartition<std::uint16_t, F> halves;
    const auto both = hn::BitCast(halves, hn::Or(bits, hn::ShiftLeft<16>(bits)));
    const std::uint32_t one =
        (odd ? 0xaaaaaaaau : 0x55555555u) & static_cast<std::uint32_t>((1ull << (2 * count)) - 1);
    hn::BlendedStore(both, hn::Mask<decltype(halves)>{one}, halves, to);
#else
    std::uint32_t each[lanes];
    hn::StoreU(bits, u32_tag, each);
    for (std::int64_t i = 0; i < count; ++i) to[2 * i + odd] = static_cast<std::uint16_t>(each[i]);
#endif
  }
};

// One vector of a square that is not all there, not full or not f32: `side` x `side` vectors of f32, zeros
// where there is nothing.
template <class T>
void gather(const WinogradRun& run, std::int64_t side, const T* from, std::int64_t n, float* to) {
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t column = 0; column < side; ++column, to += vector_width)
      store(has(run.rows, row) && has(run.columns, column)
                ? load_first(from + row * run.row_stride + column * run.column_stride,
                             static_cast<std::size_t>(n))
                : hn::Zero(f32_tag),
            to);
}

template <class M, class Planes>
void to_planes(const WinogradRun& run) {
  constexpr auto side = static_cast<std::int64_t>(M::value.columns),
                 points = static_cast<std::int64_t>(M::value.rows * M::value.rows);
  const bool narrow = run.type == ElementType::bf16, direct = !narrow && is_whole(run, side);
  alignas(64) float local[side * side * vector_width];
  for_each_vector(run, [&](std::int64_t stretch, std::int64_t element, std::int64_t n) HWY_ATTR {
    const std::int64_t offset = stretch * run.run_stride + element;
    const float* square = static_cast<const float*>(run.square) + offset;
    std::int64_t row_stride = run.row_stride, column_stride = run.column_stride;
    if (!direct || n < vector_width) {
      if (narrow)
        gather(run, side, static_cast<const bf16*>(run.square) + offset, n, local);
      else
        gather(run, side, square, n, local);
      square = local, row_stride = side * vector_width, column_stride = vector_width;
    }
    if constexpr (std::is_same_v<Planes, PairPlanes>) {
      fill_planes<M>(square, row_stride, column_stride, PairPlanes(run, stretch, element, n));
    } else {
      using T = typename Planes::Element;
      alignas(64) T part[points * vector_width];
      T* place = Planes::place(run, stretch, element);
      const bool full = n == vector_width;
      fill_planes<M>(square, row_stride, column_stride,
                     full ? Planes{place, run.plane_stride} : Planes{part, vector_width});
      for (std::int64_t plane = 0; !full && plane < points; ++plane)
        std::copy_n(part + plane * vector_width, n, place + plane * run.plane_stride);
    }
  });
}

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
