#include "superstep/target/cpu/kernels/rows/wide_reduce.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <type_traits>

namespace superstep::kernels {
namespace {

constexpr std::size_t lanes = 8;  // partial results of a contiguous row: independent of each other

// Whole numbers are added and multiplied as unsigned ones, which wrap around.
template <class T>
struct Bits {
  using Type = T;
};
template <std::integral T>
struct Bits<T> {
  using Type = std::make_unsigned_t<T>;
};
template <class T>
using BitsOf = typename Bits<T>::Type;

template <class T>
struct Sum {
  static constexpr T nothing = 0;
  static T add(T y, T x) { return static_cast<T>(BitsOf<T>(y) + BitsOf<T>(x)); }
  static T join(T a, T b) { return add(a, b); }
};
template <class T>
struct SumOfSquares : Sum<T> {
  static T add(T y, T x) { return static_cast<T>(BitsOf<T>(y) + BitsOf<T>(x) * BitsOf<T>(x)); }
};
template <class T>
struct Product {
  static constexpr T nothing = 1;
  static T add(T y, T x) { return static_cast<T>(BitsOf<T>(y) * BitsOf<T>(x)); }
  static T join(T a, T b) { return add(a, b); }
};
template <class T>
constexpr T least = std::is_integral_v<T> ? std::numeric_limits<T>::lowest()
                                          : -std::numeric_limits<T>::infinity();
template <class T>
constexpr T most = std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
// Not a number where any element is none.
template <class T>
struct Largest {
  static constexpr T nothing = least<T>;
  static T add(T y, T x) { return y >= x || y != y ? y : x; }
  static T join(T a, T b) { return add(a, b); }
};
template <class T>
struct Smallest {
  static constexpr T nothing = most<T>;
  static T add(T y, T x) { return y <= x || y != y ? y : x; }
  static T join(T a, T b) { return add(a, b); }
};

template <class T, class Fold>
class WideReduceKernel final : public Kernel {
 public:
  WideReduceKernel(KernelInfo info, const Reduce& reduce) : Kernel(std::move(info)), r_(reduce) {
    info_.parts = std::clamp<std::int64_t>(r_.outer, 1, most_parts);
  }

  void run(const Arguments& arguments) const override { run_outer(arguments, {0, r_.outer}); }
  void run_part(const Arguments& arguments, std::int64_t part) const override {
    run_outer(arguments, part_range(r_.outer, part, info_.parts));
  }

 private:
  void run_outer(const Arguments& arguments, PartRange outer) const {
    for (std::int64_t o = outer.begin; o < outer.end; ++o) {
      const T* x = static_cast<const T*>(arguments.inputs[0]) + o * r_.outer_stride;
      T* y = static_cast<T*>(arguments.outputs[0]) + o * r_.inner;
      r_.inner == 1 && r_.reduced_stride == 1 ? row(x, y) : columns(x, y);
      if (r_.reduction == Reduction::mean && r_.reduced > 0)
        for (std::int64_t i = 0; i < r_.inner; ++i) y[i] /= static_cast<T>(r_.reduced);
    }
  }

  void row(const T* x, T* y) const {
    std::array<T, lanes> partial;
    partial.fill(Fold::nothing);
    std::int64_t i = 0;
    for (; i + static_cast<std::int64_t>(lanes) <= r_.reduced; i += lanes)
      for (std::size_t k = 0; k < lanes; ++k)
        partial[k] = Fold::add(partial[k], x[i + static_cast<std::int64_t>(k)]);
    T all = Fold::nothing;
    for (const T each : partial) all = Fold::join(all, each);
    for (; i < r_.reduced; ++i) all = Fold::add(all, x[i]);
    *y = all;
  }

  void columns(const T* x, T* y) const {
    std::fill_n(y, r_.inner, Fold::nothing);
    for (std::int64_t k = 0; k < r_.reduced; ++k)
      for (std::int64_t i = 0; i < r_.inner; ++i) y[i] = Fold::add(y[i], x[k * r_.reduced_stride + i]);
  }

  Reduce r_;
};

template <class T>
Prepared prepare_of(const Reduce& reduce, KernelInfo info) {
  const auto with = [&]<class Fold>(Fold) -> Prepared {
    return std::make_unique<WideReduceKernel<T, Fold>>(std::move(info), reduce);
  };
  switch (reduce.reduction) {
    case Reduction::max: return with(Largest<T>());
    case Reduction::min: return with(Smallest<T>());
    case Reduction::product: return with(Product<T>());
    case Reduction::sum_of_squares: return with(SumOfSquares<T>());
    default: return with(Sum<T>());
  }
}

}  // namespace

bool is_wide(ElementType type) {
  return type == ElementType::f64 || (is_integer(type) && size_in_bytes(type) >= sizeof(std::int32_t));
}

Prepared prepare_wide_reduce(const Reduce& reduce, KernelInfo info) {
  if (reduce.accumulate) return refuse("wide reduction", "it is to be added to what is there");
  if (is_integer(reduce.type) && reduce.reduction == Reduction::mean)
    return refuse("wide reduction", "a mean of whole numbers");
  info.name += std::string(", ") + name_of(reduce.type);
  info.arithmetic = reduce.type;
  switch (reduce.type) {
    case ElementType::f64: return prepare_of<double>(reduce, std::move(info));
    case ElementType::i32: return prepare_of<std::int32_t>(reduce, std::move(info));
    case ElementType::u32: return prepare_of<std::uint32_t>(reduce, std::move(info));
    case ElementType::i64: return prepare_of<std::int64_t>(reduce, std::move(info));
    default: return prepare_of<std::uint64_t>(reduce, std::move(info));
  }
}

}  // namespace superstep::kernels
