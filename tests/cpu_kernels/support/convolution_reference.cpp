#include "tests/cpu_kernels/support/convolution_reference.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/random.h"

namespace superstep::kernels {

std::int64_t number_of(const Image& image, std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
  return ((h * image.width + w) * image.batch + n) * image.channels + c;
}

std::int64_t address_of(const Image& image, std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
  return image.offset(h, w) + n * image.column_stride + c;
}

namespace {

// Calls body(y position and channel, x position and channel, weight number, n) for every product.
struct Term {
  std::int64_t oh, ow, co, ih, iw, ci, weight, n;
};

template <class Body>
void for_each_term(const Convolution& c, const Body& body) {
  const Window& w = c.window;
  const std::int64_t in = c.x.channels / c.groups, out = c.y.channels / c.groups;
  for_each_element(c.y, [&](std::int64_t oh, std::int64_t ow, std::int64_t n, std::int64_t co) {
    const std::int64_t od = oh / c.y.rows(), row = oh % c.y.rows();
    for (std::int64_t tap = 0; tap < w.taps(); ++tap) {
      const std::int64_t kd = tap / (w.height * w.width), kh = tap / w.width % w.height, kw = tap % w.width;
      const std::int64_t id = od * w.stride_d + kd * w.dilation_d - w.pad_front;
      const std::int64_t ih = row * w.stride_h + kh * w.dilation_h - w.pad_top;
      const std::int64_t iw = ow * w.stride_w + kw * w.dilation_w - w.pad_left;
      if (id < 0 || id >= c.x.planes || ih < 0 || ih >= c.x.rows() || iw < 0 || iw >= c.x.width) continue;
      for (std::int64_t i = 0; i < in; ++i)
        body(
            Term{oh, ow, co, id * c.x.rows() + ih, iw, co / out * in + i, (co * in + i) * w.taps() + tap, n});
    }
  });
}

double x_at(const Convolution& c, const GuardedBuffer& x, const Term& t) {
  return x.get(address_of(c.x, t.ih, t.iw, t.n, t.ci));
}

double y_at(const Convolution& c, const GuardedBuffer& y, const Term& t) {
  return y.get(address_of(c.y, t.oh, t.ow, t.n, t.co));
}

}  // namespace

std::vector<Sum> reference_forward(const Convolution& c, const GuardedBuffer& x, const GuardedBuffer& w) {
  std::vector<Sum> y(static_cast<std::size_t>(c.y.element_count()));
  for_each_term(c, [&](const Term& t) {
    y[static_cast<std::size_t>(number_of(c.y, t.oh, t.ow, t.n, t.co))].add(x_at(c, x, t) * w.get(t.weight));
  });
  return y;
}

std::vector<Sum> reference_input_gradient(const Convolution& c, const GuardedBuffer& dy,
                                          const GuardedBuffer& w) {
  std::vector<Sum> dx(static_cast<std::size_t>(c.x.element_count()));
  for_each_term(c, [&](const Term& t) {
    dx[static_cast<std::size_t>(number_of(c.x, t.ih, t.iw, t.n, t.ci))].add(y_at(c, dy, t) * w.get(t.weight));
  });
  return dx;
}

std::vector<Sum> reference_weight_gradient(const Convolution& c, const GuardedBuffer& x,
                                           const GuardedBuffer& dy) {
  std::vector<Sum> dw(static_cast<std::size_t>(c.y.channels * (c.x.channels / c.groups) * c.window.taps()));
  for_each_term(
      c, [&](const Term& t) { dw[static_cast<std::size_t>(t.weight)].add(x_at(c, x, t) * y_at(c, dy, t)); });
  return dw;
}

namespace {

Image random_image(RandomStream& random, std::int64_t height, std::int64_t width, std::int64_t batch,
                   std::int64_t channels) {
  Image image = dense_image(height, width, batch, channels);
  if (random.below(3) == 0) {
    image.column_stride += static_cast<std::int64_t>(random.below(9));
    image.row_stride = image.columns() * image.column_stride + static_cast<std::int64_t>(random.below(5));
  }
  return image;
}

}  // namespace

Convolution random_convolution(std::uint64_t seed) {
  RandomStream random(seed);
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(bound)); };
  const auto one_to = [&](std::uint64_t bound) { return 1 + below(bound); };
  Convolution c;
  Window& w = c.window;
  w = {one_to(4), one_to(4), one_to(3), one_to(3), one_to(2), one_to(2), 0, 0};
  if (below(3) == 0) w = {one_to(3), one_to(3)};  // plain windows are the usual ones
  w.pad_top = below(static_cast<std::uint64_t>(w.height + 1));
  w.pad_left = below(static_cast<std::uint64_t>(w.width + 1));
  if (below(4) == 0) w = {};
  c.groups = below(3) == 0 ? one_to(3) : 1;
  static constexpr std::int64_t channels[] = {1, 2, 3, 5, 8, 16, 17, 32, 64, 65, 80, 130};
  const std::uint64_t kinds = c.groups > 1 ? 7 : std::size(channels);
  const std::int64_t in = c.groups * channels[random.below(kinds)],
                     out = c.groups * channels[random.below(kinds)];
  const std::int64_t batch = one_to(5), height = one_to(7), width = one_to(9);
  // The output that fits, with the padding below and to the right between none and the whole window.
  const auto extent = [&](std::int64_t input, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                          std::int64_t pad) {
    const std::int64_t after = w.is_pointwise() ? 0 : below(static_cast<std::uint64_t>(taps + 1));
    return std::max<std::int64_t>(1, (input + pad + after - (taps - 1) * dilation - 1) / stride + 1);
  };
  c.x = random_image(random, height, width, batch, in);
  c.y = random_image(random, extent(height, w.height, w.stride_h, w.dilation_h, w.pad_top),
                     extent(width, w.width, w.stride_w, w.dilation_w, w.pad_left), batch, out);
  return c;
}

Convolution random_volume_convolution(std::uint64_t seed) {
  Convolution c = random_convolution(seed);
  RandomStream random(seed, 3);
  const auto one_to = [&](std::uint64_t bound) { return 1 + static_cast<std::int64_t>(random.below(bound)); };
  Window& w = c.window;
  w.depth = one_to(3), w.stride_d = one_to(2), w.dilation_d = one_to(2);
  w.pad_front = one_to(static_cast<std::uint64_t>(w.depth + 1)) - 1;
  c.x.planes = one_to(6);
  const std::int64_t after = one_to(static_cast<std::uint64_t>(w.depth + 1)) - 1;
  const std::int64_t room = c.x.planes + w.pad_front + after - (w.depth - 1) * w.dilation_d - 1;
  c.y.planes = std::max<std::int64_t>(1, (room < 0 ? -1 : room / w.stride_d) + 1);
  for (Image* image : {&c.x, &c.y}) image->height *= image->planes;
  return c;
}

Convolution random_depthwise_convolution(std::uint64_t seed) {
  RandomStream random(seed);
  static constexpr std::int64_t channels[] = {1, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 71, 130};
  Convolution c = random_convolution(seed);
  c.groups = channels[random.below(std::size(channels))];
  for (Image* image : {&c.x, &c.y}) {
    const std::int64_t gap = image->column_stride - image->channels;
    const std::int64_t row_gap = image->row_stride - image->columns() * image->column_stride;
    image->channels = c.groups;
    image->column_stride = c.groups + gap;
    image->row_stride = image->columns() * image->column_stride + row_gap;
  }
  return c;
}

std::string describe(const Convolution& c) {
  const Window& w = c.window;
  return fmt::format(
      "x [{}: {} {} {} {}] strides {} {}, y [{}: {} {} {} {}] strides {} {}, window {}x{}x{} stride {}x{}x{} "
      "dilation {}x{}x{} pad {}x{}x{} groups {}",
      c.x.planes, c.x.height, c.x.width, c.x.batch, c.x.channels, c.x.row_stride, c.x.column_stride,
      c.y.planes, c.y.height, c.y.width, c.y.batch, c.y.channels, c.y.row_stride, c.y.column_stride, w.depth,
      w.height, w.width, w.stride_d, w.stride_h, w.stride_w, w.dilation_d, w.dilation_h, w.dilation_w,
      w.pad_front, w.pad_top, w.pad_left, c.groups);
}

}  // namespace superstep::kernels
