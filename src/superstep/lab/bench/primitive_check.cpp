#include "superstep/lab/bench/primitive_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/random.h"
#include "superstep/lab/bench/recurrent_reference.h"

namespace superstep::lab {
namespace {

constexpr int outputs_checked = 24, weights_checked = 3;

// A sum and the sum of the magnitudes of its terms.
struct Sum {
  double value = 0, magnitude = 0;
  void add(double a, double b) {
    value += a * b;
    magnitude += std::abs(a * b);
  }
};

// Of an element, as a share of the sum of its terms' magnitudes. Chosen: some 170 roundings of f32 and 2.5 of
// bf16; sums of bytes are exact.
double tolerance_of(const std::string& precision) {
  return precision == "f32" ? 2e-5 : precision == "int8" ? 0 : 1e-2;
}

class Checker {
 public:
  explicit Checker(PrimitiveRun& run)
      : run_(run), p_(run.primitive()), tolerance_(tolerance_of(run.options().precision)) {}

  CheckReport check() {
    run_.call();
    switch (p_.kind) {
      case PrimitiveKind::gemm: check_product(); break;
      case PrimitiveKind::conv: check_convolution(); break;
      case PrimitiveKind::relu: check_rectifier(); break;
      case PrimitiveKind::lstm:
      case PrimitiveKind::gru:
      case PrimitiveKind::rnn: check_recurrent(); break;
    }
    return report_;
  }

 private:
  bool has_y() const { return run_.options().passes != Passes::gradients; }
  bool has_gradients() const { return run_.options().passes != Passes::forward; }

  std::int64_t draw(std::int64_t below) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(below)));
  }

  void compare(double found, const Sum& sum, const std::string& where) {
    const double error = std::abs(found - sum.value);
    const double tolerated = tolerance_ * sum.magnitude;
    // Beyond the tolerance where it is 0: any error is too much.
    const double share = error == 0 ? 0 : tolerated > 0 ? error / tolerated : INFINITY;
    ++report_.checked;
    if (share > report_.worst || !std::isfinite(found)) {
      report_.worst = share;
      report_.where = where;
    }
    if (share <= 1) return;
    throw Error(ErrorCode::internal,
                fmt::format("{} is {:.9g} and should be {:.9g} ({})", where, found, sum.value,
                            run_.options().precision),
                p_.name, "the time of a wrong result is not reported");
  }

  void check_product() {
    const Tensor &x = run_.input("x"), w = run_.weights("weights");
    for (int t = 0; has_y() && t < outputs_checked; ++t) {
      const Tensor& y = run_.output("y");
      const std::int64_t i = draw(p_.m), j = draw(p_.n);
      Sum sum;
      for (std::int64_t k = 0; k < p_.k; ++k) sum.add(x.at(i * p_.k + k), w.at(k * p_.n + j));
      compare(y.at(i * p_.n + j), sum, fmt::format("y[{}, {}]", i, j));
    }
    if (has_gradients()) check_product_gradients(x, w);
  }

  void check_product_gradients(const Tensor& x, const Tensor& w) {
    const Tensor &dy = run_.input("dy"), &dx = run_.output("dx"), dw = run_.weights("weights.gradient");
    for (int t = 0; t < outputs_checked; ++t) {
      const std::int64_t i = draw(p_.m), j = draw(p_.n), k = draw(p_.k);
      Sum by_x, by_w;
      for (std::int64_t n = 0; n < p_.n; ++n) by_x.add(dy.at(i * p_.n + n), w.at(k * p_.n + n));
      compare(dx.at(i * p_.k + k), by_x, fmt::format("dx[{}, {}]", i, k));
      for (std::int64_t m = 0; m < p_.m; ++m) by_w.add(x.at(m * p_.k + k), dy.at(m * p_.n + j));
      compare(dw.at(k * p_.n + j) * run_.gradient_scale(), by_w, fmt::format("dw[{}, {}]", k, j));
    }
  }

  std::int64_t out_width() const { return conv_out(p_.width, p_.filter_width, p_.pad_width); }
  std::int64_t out_height() const { return conv_out(p_.height, p_.filter_height, p_.pad_height); }
  // Positions in x, y and w; -1 outside the image.
  std::int64_t x_at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    if (h < 0 || h >= p_.height || w < 0 || w >= p_.width) return -1;
    return ((n * p_.channels + c) * p_.height + h) * p_.width + w;
  }
  std::int64_t y_at(std::int64_t n, std::int64_t f, std::int64_t h, std::int64_t w) const {
    if (h < 0 || h >= out_height() || w < 0 || w >= out_width()) return -1;
    return ((n * p_.filters + f) * out_height() + h) * out_width() + w;
  }
  std::int64_t w_at(std::int64_t f, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return ((f * p_.channels + c) * p_.filter_height + h) * p_.filter_width + w;
  }

  void check_convolution() {
    const Tensor &x = run_.input("x"), w = run_.weights("weights");
    for (int t = 0; has_y() && t < outputs_checked; ++t) {
      const Tensor& y = run_.output("y");
      const std::int64_t n = draw(p_.batch), f = draw(p_.filters), oh = draw(out_height()),
                         ow = draw(out_width());
      Sum sum;
      for (std::int64_t c = 0; c < p_.channels; ++c)
        for (std::int64_t h = 0; h < p_.filter_height; ++h)
          for (std::int64_t v = 0; v < p_.filter_width; ++v)
            if (const auto at = x_at(n, c, oh + h - p_.pad_height, ow + v - p_.pad_width); at >= 0)
              sum.add(x.at(at), w.at(w_at(f, c, h, v)));
      compare(y.at(y_at(n, f, oh, ow)), sum, fmt::format("y[{}, {}, {}, {}]", n, f, oh, ow));
    }
    if (!has_gradients()) return;
    for (int t = 0; t < outputs_checked; ++t) check_image_gradient(w);
    for (int t = 0; t < weights_checked; ++t) check_filter_gradient(x);
  }

  void check_image_gradient(const Tensor& w) {
    const Tensor &dy = run_.input("dy"), &dx = run_.output("dx");
    const std::int64_t n = draw(p_.batch), c = draw(p_.channels), ih = draw(p_.height), iw = draw(p_.width);
    Sum sum;
    for (std::int64_t f = 0; f < p_.filters; ++f)
      for (std::int64_t h = 0; h < p_.filter_height; ++h)
        for (std::int64_t v = 0; v < p_.filter_width; ++v)
          if (const auto at = y_at(n, f, ih - h + p_.pad_height, iw - v + p_.pad_width); at >= 0)
            sum.add(dy.at(at), w.at(w_at(f, c, h, v)));
    compare(dx.at(x_at(n, c, ih, iw)), sum, fmt::format("dx[{}, {}, {}, {}]", n, c, ih, iw));
  }

  void check_filter_gradient(const Tensor& x) {
    const Tensor &dy = run_.input("dy"), dw = run_.weights("weights.gradient");
    const std::int64_t f = draw(p_.filters), c = draw(p_.channels), h = draw(p_.filter_height),
                       v = draw(p_.filter_width);
    Sum sum;
    for (std::int64_t n = 0; n < p_.batch; ++n)
      for (std::int64_t oh = 0; oh < out_height(); ++oh)
        for (std::int64_t ow = 0; ow < out_width(); ++ow)
          if (const auto at = x_at(n, c, oh + h - p_.pad_height, ow + v - p_.pad_width); at >= 0)
            sum.add(x.at(at), dy.at(y_at(n, f, oh, ow)));
    compare(dw.at(w_at(f, c, h, v)) * run_.gradient_scale(), sum,
            fmt::format("dw[{}, {}, {}, {}]", f, c, h, v));
  }

  void check_rectifier() {
    const Tensor& x = run_.input("x");
    for (int t = 0; t < 40 * outputs_checked; ++t) {
      const std::int64_t i = draw(x.element_count());
      if (has_y()) compare(run_.output("y").at(i), {std::max(0.0, x.at(i)), 1}, fmt::format("y({})", i));
      if (!has_gradients()) continue;
      const double dy = x.at(i) > 0 ? run_.input("dy").at(i) : 0;
      compare(run_.output("dx").at(i), {dy, 1}, fmt::format("dx({})", i));
    }
  }

  void check_recurrent() {
    const std::int64_t sample = draw(p_.batch);
    const RecurrentReference reference(p_, run_.weights("w"), run_.weights("r"));
    const RecurrentSample x = reference.sample_of(run_.input("x"), sample);
    const std::vector<double> expected = reference.forward(x);
    const std::int64_t first = sample * p_.steps * p_.hidden;
    for (std::size_t i = 0; i < expected.size(); ++i)
      compare(run_.output("y").at(first + static_cast<std::int64_t>(i)), {expected[i], 1},
              fmt::format("y({})", i));
    if (has_gradients()) check_recurrent_gradients(reference, x, sample);
  }

  // (L(x + e v) - L(x - e v)) / 2e = v . dx with L = dy . y; the same for both weights, with dy of one
  // sample.
  void check_recurrent_gradients(const RecurrentReference& reference, const RecurrentSample& x,
                                 std::int64_t sample) {
    run_.keep_dy_of(sample);
    run_.call();
    const Tensor& dy = run_.input("dy");
    std::vector<double> cotangent(static_cast<std::size_t>(p_.steps * p_.hidden));
    for (std::size_t i = 0; i < cotangent.size(); ++i)
      cotangent[i] = dy.at(sample * p_.steps * p_.hidden + static_cast<std::int64_t>(i));
    const Tensor dw = run_.weights("w.gradient"), dr = run_.weights("r.gradient");
    for (const auto& [name, by] : {std::pair{"dx", RecurrentReference::By::x},
                                   {"dw", RecurrentReference::By::w},
                                   {"dr", RecurrentReference::By::r}}) {
      const std::vector<double> direction = reference.direction(by, random_.next_u64());
      const double expected = reference.directional_derivative(x, by, direction, cotangent);
      const bool input = by == RecurrentReference::By::x;
      const Tensor& gradient = input ? run_.output("dx") : by == RecurrentReference::By::w ? dw : dr;
      const std::int64_t first = input ? sample * p_.steps * p_.inputs : 0;
      const double scale = input ? 1 : run_.gradient_scale();
      Sum sum;
      for (std::size_t i = 0; i < direction.size(); ++i)
        sum.add(direction[i], scale * gradient.at(first + static_cast<std::int64_t>(i)));
      // Terms of either sign add up: the error grows with the root of their number, not with it.
      const double root = sum.magnitude / std::sqrt(static_cast<double>(direction.size()));
      compare(sum.value, {expected, std::max(root * 20, std::abs(expected))},
              fmt::format("{} along a direction", name));
    }
    run_.restore_dy();
  }

  PrimitiveRun& run_;
  const Primitive& p_;
  double tolerance_;
  RandomStream random_{7};
  CheckReport report_;
};

}  // namespace

CheckReport check_primitive(PrimitiveRun& run) { return Checker(run).check(); }

}  // namespace superstep::lab
