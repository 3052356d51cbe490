#include "superstep/target/cpu/kernels/rows/wide_reduce.h"

#include <algorithm>
#include <array>
#include <limits>

namespace superstep::kernels {
namespace {

constexpr std::size_t lanes = 8;  // partial results of a contiguous row: independent of each other

struct Sum {
  static constexpr double nothing = 0;
  static double add(double y, double x) { return y + x; }
  static double join(double a, double b) { return a + b; }
};
struct SumOfSquares : Sum {
  static double add(double y, double x) { return y + x * x; }
};
struct Product {
  static constexpr double nothing = 1;
  static double add(double y, double x) { return y * x; }
  static double join(double a, double b) { return a * b; }
};
// Not a number where any element is none.
struct Largest {
  static constexpr double nothing = -std::numeric_limits<double>::infinity();
  static double add(double y, double x) { return y >= x || y != y ? y : x; }
  static double join(double a, double b) { return add(a, b); }
};
struct Smallest {
  static constexpr double nothing = std::numeric_limits<double>::infinity();
  static double add(double y, double x) { return y <= x || y != y ? y : x; }
  static double join(double a, double b) { return add(a, b); }
};

template <class Fold>
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
      const double* x = static_cast<const double*>(arguments.inputs[0]) + o * r_.outer_stride;
      double* y = static_cast<double*>(arguments.outputs[0]) + o * r_.inner;
      r_.inner == 1 && r_.reduced_stride == 1 ? row(x, y) : columns(x, y);
      if (r_.reduction == Reduction::mean && r_.reduced > 0)
        for (std::int64_t i = 0; i < r_.inner; ++i) y[i] /= static_cast<double>(r_.reduced);
    }
  }

  void row(const double* x, double* y) const {
    std::array<double, lanes> partial;
    partial.fill(Fold::nothing);
    std::int64_t i = 0;
    for (; i + static_cast<std::int64_t>(lanes) <= r_.reduced; i += lanes)
      for (std::size_t k = 0; k < lanes; ++k)
        partial[k] = Fold::add(partial[k], x[i + static_cast<std::int64_t>(k)]);
    double all = Fold::nothing;
    for (const double each : partial) all = Fold::join(all, each);
    for (; i < r_.reduced; ++i) all = Fold::add(all, x[i]);
    *y = all;
  }

  void columns(const double* x, double* y) const {
    std::fill_n(y, r_.inner, Fold::nothing);
    for (std::int64_t k = 0; k < r_.reduced; ++k)
      for (std::int64_t i = 0; i < r_.inner; ++i) y[i] = Fold::add(y[i], x[k * r_.reduced_stride + i]);
  }

  Reduce r_;
};

}  // namespace

Prepared prepare_wide_reduce(const Reduce& reduce, KernelInfo info) {
  if (reduce.accumulate) return refuse("reduction of f64", "it is to be added to what is there");
  info.name += ", f64";
  info.arithmetic = ElementType::f64;
  switch (reduce.reduction) {
    case Reduction::max: return std::make_unique<WideReduceKernel<Largest>>(std::move(info), reduce);
    case Reduction::min: return std::make_unique<WideReduceKernel<Smallest>>(std::move(info), reduce);
    case Reduction::product: return std::make_unique<WideReduceKernel<Product>>(std::move(info), reduce);
    case Reduction::sum_of_squares:
      return std::make_unique<WideReduceKernel<SumOfSquares>>(std::move(info), reduce);
    default: return std::make_unique<WideReduceKernel<Sum>>(std::move(info), reduce);
  }
}

}  // namespace superstep::kernels
