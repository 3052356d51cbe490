#include "superstep/target/cpu/kernels/rows/layer_normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/target/cpu/kernels/core/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "superstep/target/cpu/kernels/rows/layer_normalization.cpp"
#include <hwy/foreach_target.h>

#include "superstep/target/cpu/kernels/core/vector-inl.h"
#include "superstep/target/cpu/kernels/rows/layer_normalization_loops.h"

HWY_BEFORE_NAMESPACE();
namespace superstep::kernels::HWY_NAMESPACE {

constexpr auto width = static_cast<std::int64_t>(lanes);

// Calls body(i, n) for the vectors of a row: elements i to i + n - 1, all full but the last.
template <class Body>
HWY_INLINE void for_each_vector(std::int64_t length, const Body& body) {
  std::int64_t i = 0;
  for (; i + width <= length; i += width) body(i, lanes);
  if (i < length) body(i, static_cast<std::size_t>(length - i));
}

// The sum of term(i, n) over a row; the lanes behind the last element are left out.
template <class Term>
HWY_INLINE float sum_of(std::int64_t length, const Term& term) {
  V a = hn::Zero(f32_tag), b = a;
  std::int64_t i = 0;
  for (; i + 2 * width <= length; i += 2 * width) {
    a = hn::Add(a, term(i, lanes));
    b = hn::Add(b, term(i + width, lanes));
  }
  for (; i < length; i += width) {
    const auto n = static_cast<std::size_t>(std::min(width, length - i));
    a = hn::Add(a, hn::IfThenElseZero(hn::FirstN(f32_tag, n), term(i, n)));
  }
  return sum_of_lanes(hn::Add(a, b));
}

struct Moments {
  float mean, inverse;  // inverse: 1 / sqrt(variance + epsilon)
};

HWY_INLINE Moments moments_of(const float* x, std::int64_t length, float epsilon) {
  const auto count = static_cast<float>(length);
  const float mean =
      sum_of(length, [&](std::int64_t i, std::size_t n) HWY_ATTR { return load_first(x + i, n); }) / count;
  const V shift = constant(mean);
  const float squares = sum_of(length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
    const V difference = hn::Sub(load_first(x + i, n), shift);
    return hn::Mul(difference, difference);
  });
  return {mean, 1 / std::sqrt(squares / count + epsilon)};
}

void forward(const LayerNormalization& s, const float* x, const float* scale, const float* bias, float* y) {
  for (std::int64_t row = 0; row < s.rows; ++row, x += s.x_stride, y += s.y_stride) {
    const Moments m = moments_of(x, s.length, s.epsilon);
    const V mean = constant(m.mean), inverse = constant(m.inverse);
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      const V normal = hn::Mul(hn::Sub(load_first(x + i, n), mean), inverse);
      const V factor = load_first(scale + i, n);
      const V result = bias ? hn::MulAdd(normal, factor, load_first(bias + i, n)) : hn::Mul(normal, factor);
      store_first(result, y + i, n);
    });
  }
}

void gradient(const LayerNormalization& s, const float* dy, const float* x, const float* scale, float* dx,
              float* d_scale, float* d_bias) {
  const auto count = static_cast<float>(s.length);
  for (std::int64_t row = 0; row < s.rows; ++row, x += s.x_stride, dy += s.y_stride, dx += s.dx_stride) {
    const Moments m = moments_of(x, s.length, s.epsilon);
    const V mean = constant(m.mean), inverse = constant(m.inverse);
    V sum = hn::Zero(f32_tag), dot = sum;  // of g and of g n, with g = dy scale and n the normalised x
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      const V up = load_first(dy + i, n), g = hn::Mul(up, load_first(scale + i, n));
      const V normal = hn::Mul(hn::Sub(load_first(x + i, n), mean), inverse);
      sum = hn::Add(sum, g);
      dot = hn::MulAdd(g, normal, dot);
      store_first(hn::MulAdd(up, normal, load_first(d_scale + i, n)), d_scale + i, n);
      store_first(hn::Add(up, load_first(d_bias + i, n)), d_bias + i, n);
    });
    const V mean_g = constant(sum_of_lanes(sum) / count), mean_gn = constant(sum_of_lanes(dot) / count);
    for_each_vector(s.length, [&](std::int64_t i, std::size_t n) HWY_ATTR {
      const V g = hn::Mul(load_first(dy + i, n), load_first(scale + i, n));
      const V normal = hn::Mul(hn::Sub(load_first(x + i, n), mean), inverse);
      const V rest = hn::NegMulAdd(normal, mean_gn, hn::Sub(g, mean_g));
      store_first(hn::Mul(rest, inverse), dx + i, n);
    });
  }
}

LayerNormalizationLoops layer_normalization_loops() { return {forward, gradient}; }

}  // namespace superstep::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace superstep::kernels {

HWY_EXPORT(layer_normalization_loops);

namespace {

class LayerNormalizationKernel final : public Kernel {
 public:
  LayerNormalizationKernel(KernelInfo info, const LayerNormalization& n)
      : Kernel(std::move(info)), n_(n), loops_(SUPERSTEP_VECTOR_FUNCTION(layer_normalization_loops)()) {}

  void run(const Arguments& arguments) const override {
    const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments.inputs[i]); };
    loops_.forward(n_, in(0), in(1), n_.bias ? in(2) : nullptr, static_cast<float*>(arguments.outputs[0]));
  }

 private:
  LayerNormalization n_;
  LayerNormalizationLoops loops_;
};

class LayerNormalizationGradientKernel final : public Kernel {
 public:
  LayerNormalizationGradientKernel(KernelInfo info, const LayerNormalization& n)
      : Kernel(std::move(info)), n_(n), loops_(SUPERSTEP_VECTOR_FUNCTION(layer_normalization_loops)()) {}

  void run(const Arguments& arguments) const override {
    const auto in = [&](std::size_t i) { return static_cast<const float*>(arguments.inputs[i]); };
    const auto out = [&](std::size_t i) { return static_cast<float*>(arguments.outputs[i]); };
    std::fill_n(out(1), n_.length, 0.0f);
    std::fill_n(out(2), n_.length, 0.0f);
    loops_.gradient(n_, in(0), in(1), in(2), out(0), out(1), out(2));
  }

 private:
  LayerNormalization n_;
  LayerNormalizationLoops loops_;
};

std::string fault_of(const LayerNormalization& n) {
  if (n.rows < 0 || n.length < 1) return "the rows are empty";
  for (std::int64_t stride : {n.x_stride, n.y_stride, n.dx_stride})
    if (stride != 0 && stride < n.length) return "rows overlap";
  return {};
}

LayerNormalization with_strides(LayerNormalization n) {
  for (std::int64_t* stride : {&n.x_stride, &n.y_stride, &n.dx_stride})
    if (*stride == 0) *stride = n.length;
  return n;
}

KernelInfo describe(const LayerNormalization& n, bool gradient) {
  const auto elements = static_cast<double>(n.rows * n.length);
  KernelInfo info;
  info.name =
      fmt::format("layer normalization{}, {} rows of {}", gradient ? " gradient" : "", n.rows, n.length);
  info.flops = elements * (gradient ? 17 : 8);
  info.bytes = elements * (gradient ? 12 : 8);
  info.inputs = gradient || n.bias ? 3 : 2;
  info.outputs = gradient ? 3 : 1;
  return info;
}

}  // namespace

Prepared prepare_layer_normalization(const LayerNormalization& n) {
  if (std::string fault = fault_of(n); !fault.empty()) return refuse("layer normalization", fault);
  return std::make_unique<LayerNormalizationKernel>(describe(n, false), with_strides(n));
}

Prepared prepare_layer_normalization_gradient(const LayerNormalization& n) {
  if (std::string fault = fault_of(n); !fault.empty()) return refuse("layer normalization", fault);
  return std::make_unique<LayerNormalizationGradientKernel>(describe(n, true), with_strides(n));
}

}  // namespace superstep::kernels
#endif
