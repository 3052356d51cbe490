#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/move/pool.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

Pool random_pool(std::uint64_t seed, Pooling pooling) {
  // The geometry of a random convolution, with as many channels in as out and every window reaching inside.
  for (std::uint64_t attempt = seed * 1000;; ++attempt) {
    const Convolution c = attempt % 2 == 0 ? random_convolution(attempt) : random_volume_convolution(attempt);
    Pool pool{c.x, c.y, c.window, pooling};
    if (c.x.channels > 40) continue;
    pool.y.column_stride += pool.x.channels - pool.y.channels;
    pool.y.channels = pool.x.channels;
    if (pool.y.column_stride < pool.y.channels) continue;
    pool.y.row_stride = pool.y.columns() * pool.y.column_stride;
    if (seed % 3 == 0) pool.y.type = ElementType::bf16;
    if (seed % 5 == 0) pool.x.type = ElementType::bf16;
    if (prepare_pool(pool)) return pool;
  }
}

struct Winner {
  double value = -INFINITY;
  double sum = 0;
  std::int64_t tap = -1, taps = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;  // tap, address in x
};

Winner window_at(const Pool& p, const GuardedBuffer* x, std::int64_t oh, std::int64_t ow, std::int64_t n,
                 std::int64_t c) {
  Winner winner;
  const Window& k = p.window;
  for (std::int64_t tap = 0; tap < k.taps(); ++tap) {
    const std::int64_t kd = tap / (k.height * k.width), kh = tap / k.width % k.height, kw = tap % k.width;
    const std::int64_t id = oh / p.y.rows() * k.stride_d + kd * k.dilation_d - k.pad_front;
    const std::int64_t ih = oh % p.y.rows() * k.stride_h + kh * k.dilation_h - k.pad_top;
    const std::int64_t iw = ow * k.stride_w + kw * k.dilation_w - k.pad_left;
    if (id < 0 || id >= p.x.planes || ih < 0 || ih >= p.x.rows() || iw < 0 || iw >= p.x.width) continue;
    const std::int64_t address = address_of(p.x, id * p.x.rows() + ih, iw, n, c);
    winner.places.push_back({tap, address});
    ++winner.taps;
    if (!x) continue;
    winner.sum += x->get(address);
    if (x->get(address) > winner.value) winner.value = x->get(address), winner.tap = tap;
  }
  return winner;
}

double divisor(const Pool& p, const Winner& w) {
  return p.pooling == Pooling::average ? static_cast<double>(w.taps) : static_cast<double>(p.window.taps());
}

double rounding(ElementType type) { return type == ElementType::bf16 ? 0x1p-8 : 1e-6; }

void check_forward(const Pool& p, std::uint64_t seed) {
  GuardedBuffer x = image_buffer(p.x), y = image_buffer(p.y), winners(ElementType::u8, p.y.element_count());
  p.x.type == ElementType::u8 ? x.fill_random(seed, 0, 255) : x.fill_random(seed);
  std::vector<void*> outputs{y.data()};
  if (p.save_argmax) outputs.push_back(winners.data());
  run_kernel(*require_kernel(prepare_pool(p)), {x.data()}, outputs);
  int wrong = 0;
  for_each_element(p.y, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    const Winner expected = window_at(p, &x, h, w, n, c);
    const double value = p.pooling == Pooling::max ? expected.value : expected.sum / divisor(p, expected);
    wrong += std::abs(y.get(address_of(p.y, h, w, n, c)) - value) > rounding(p.y.type);
    if (p.save_argmax) wrong += winners.get(number_of(p.y, h, w, n, c)) != static_cast<double>(expected.tap);
  });
  EXPECT_EQ(0, wrong) << "seed " << seed;
}

void check_gradient(const Pool& p, std::uint64_t seed) {
  const bool is_max = p.pooling == Pooling::max;
  GuardedBuffer dy = image_buffer(p.y), dx = image_buffer(p.x), winners(ElementType::u8, p.y.element_count());
  dy.fill_random(seed);
  dx.fill_random(seed + 1);
  std::vector<Sum> expected(static_cast<std::size_t>(extent_of(p.x)));
  if (p.accumulate)
    for_each_element(p.x, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
      const std::int64_t at = address_of(p.x, h, w, n, c);
      expected[static_cast<std::size_t>(at)].add(dx.get(at));
    });
  RandomStream random(seed);
  for_each_element(p.y, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    const Winner window = window_at(p, nullptr, h, w, n, c);
    const double g = dy.get(address_of(p.y, h, w, n, c));
    const auto& chosen = window.places[random.below(window.places.size())];
    winners.set(number_of(p.y, h, w, n, c), static_cast<double>(chosen.first));
    if (is_max) expected[static_cast<std::size_t>(chosen.second)].add(g);
    for (const auto& place : window.places)
      if (!is_max) expected[static_cast<std::size_t>(place.second)].add(g / divisor(p, window));
  });
  std::vector<const void*> inputs{dy.data()};
  if (is_max) inputs.push_back(winners.data());
  run_kernel(*require_kernel(prepare_pool_gradient(p)), inputs, {dx.data()});
  int wrong = 0;
  for_each_element(p.x, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    const std::int64_t at = address_of(p.x, h, w, n, c);
    const Sum& sum = expected[static_cast<std::size_t>(at)];
    wrong += std::abs(dx.get(at) - sum.value) > rounding(p.x.type) * (1 + sum.magnitude);
  });
  EXPECT_EQ(0, wrong) << "seed " << seed;
}

TEST(Pool, forward_agrees_with_the_definition) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 25; ++seed)
      for (Pooling pooling : {Pooling::max, Pooling::average, Pooling::average_with_padding}) {
        Pool p = random_pool(seed, pooling);
        p.save_argmax = pooling == Pooling::max && seed % 2 == 0;
        check_forward(p, seed);
      }
  });
}

TEST(Pool, the_largest_of_bytes) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      Pool p = random_pool(seed, Pooling::max);
      p.x.type = p.y.type = ElementType::u8;
      if (seed % 2 == 0) {  // without gaps: long runs, and those of a sample's few channels
        const std::int64_t channels = std::array{37, 16, 48, 3, 90}[seed / 2 % 5];
        for (Image* image : {&p.x, &p.y}) {
          const std::int64_t planes = image->planes;
          *image = dense_image(image->height, image->width, image->batch, channels, ElementType::u8);
          image->planes = planes;
        }
      }
      GuardedBuffer x = image_buffer(p.x), y = image_buffer(p.y);
      x.fill_random(seed, 0, 255);
      run_kernel(*require_kernel(prepare_pool(p)), {x.data()}, {y.data()});
      int wrong = 0;
      for_each_element(p.y, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
        wrong += y.get(address_of(p.y, h, w, n, c)) != window_at(p, &x, h, w, n, c).value;
      });
      EXPECT_EQ(0, wrong) << "seed " << seed;
    }
  });
}

// Windows whose taps are the same all along a row are taken together, those at its ends apart.
TEST(Pool, rows_of_windows_that_overlap_and_leave_gaps) {
  for_each_instruction_set([] {
    std::uint64_t seed = 0;
    for (const std::int64_t stride : {1, 2, 3})
      for (const std::int64_t dilation : {1, 2})
        for (const std::int64_t channels : {1, 16, 33})
          for (const ElementType type : {ElementType::f32, ElementType::bf16, ElementType::u8}) {
            Pool p{dense_image(9, 23, 1 + stride % 2, channels, type),
                   dense_image((9 + 2 - 2 * dilation - 1) / stride + 1,
                               (23 + 2 - 2 * dilation - 1) / stride + 1, 1 + stride % 2, channels, type),
                   {.height = 3,
                    .width = 3,
                    .stride_h = stride,
                    .stride_w = stride,
                    .dilation_h = dilation,
                    .dilation_w = dilation,
                    .pad_top = 1,
                    .pad_left = 1}};
            check_forward(p, ++seed);
            if (type == ElementType::u8) continue;
            p.save_argmax = true;
            check_forward(p, ++seed);
            p.save_argmax = false, p.pooling = Pooling::average;
            check_forward(p, ++seed);
          }
  });
}

TEST(Pool, bytes_have_maxima_alone) {
  Pool p{dense_image(4, 4, 1, 4, ElementType::u8),
         dense_image(2, 2, 1, 4, ElementType::u8),
         {.height = 2, .width = 2, .stride_h = 2, .stride_w = 2}};
  EXPECT_TRUE(prepare_pool(p));
  EXPECT_EQ("images must be f32 or bf16", prepare_pool_gradient(p).error().reason);
  p.save_argmax = true;
  EXPECT_EQ("images must be f32 or bf16", prepare_pool(p).error().reason);
  p.save_argmax = false, p.pooling = Pooling::average;
  EXPECT_EQ("images must be f32 or bf16", prepare_pool(p).error().reason);
}

TEST(Pool, gradient_agrees_with_the_definition) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 25; ++seed)
      for (Pooling pooling : {Pooling::max, Pooling::average, Pooling::average_with_padding}) {
        Pool p = random_pool(seed, pooling);
        p.accumulate = seed % 3 == 1;
        check_gradient(p, seed);
      }
  });
}

TEST(Pool, global_average_of_a_large_image) {
  for_each_instruction_set([] {
    Pool p{
        dense_image(20, 31, 2, 19), dense_image(1, 1, 2, 19), {.height = 20, .width = 31}, Pooling::average};
    check_forward(p, 1);
    p.x = dense_image(7, 7, 2, 19), p.window = {.height = 7, .width = 7};
    check_forward(p, 2);
    check_gradient(p, 3);
  });
}

TEST(Pool, nan_in_a_window_shows_and_ties_go_to_the_first_tap) {
  for_each_instruction_set([] {
    Pool p{dense_image(1, 4, 1, 1), dense_image(1, 2, 1, 1), {.height = 1, .width = 2, .stride_w = 2}};
    p.save_argmax = true;
    std::vector<float> x{NAN, 1, 3, 3}, y(2);
    std::vector<std::uint8_t> winners(2);
    run_kernel(*require_kernel(prepare_pool(p)), {x.data()}, {y.data(), winners.data()});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(3, y[1]);
    EXPECT_EQ(0, winners[1]);
  });
}

// Bits, not values: of equal ones the first counts, so that -0 and 0 part the two.
void expect_the_same_maxima(const Pool& p, std::uint64_t seed) {
  GuardedBuffer x = image_buffer(p.x), y = image_buffer(p.y), other = image_buffer(p.y);
  x.fill_random(seed, -1, 1);
  RandomStream random(seed);
  for_each_element(p.x, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    const std::int64_t at = address_of(p.x, h, w, n, c);
    const std::uint64_t draw = random.below(40);
    if (draw < 20) x.set(at, draw < 10 ? 0.0 : -0.0);
    if (draw == 20) x.set(at, NAN);
    if (draw == 21) x.set(at, -INFINITY);
  });
  run_kernel(*require_kernel(pooling_forward().prepare(p, "sliding windows")), {x.data()}, {y.data()});
  run_kernel(*require_kernel(pooling_forward().prepare(p, "window by window")), {x.data()}, {other.data()});
  int wrong = 0;
  for_each_element(p.y, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    const double a = y.get(address_of(p.y, h, w, n, c)), b = other.get(address_of(p.y, h, w, n, c));
    wrong += std::isnan(a) ? !std::isnan(b) : a != b || std::signbit(a) != std::signbit(b);
  });
  EXPECT_EQ(0, wrong) << "seed " << seed;
}

Image with_gaps(Image image, std::int64_t gap) {
  image.column_stride += gap;
  image.row_stride = image.columns() * image.column_stride + gap;
  return image;
}

TEST(Pool, sliding_windows_agree_with_windows_one_by_one) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      RandomStream random(seed);
      const auto draw = [&](std::uint64_t least, std::uint64_t most) {
        return static_cast<std::int64_t>(least + random.below(most - least + 1));
      };
      const std::int64_t kh = draw(1, 9), kw = draw(kh == 1 ? 2 : 1, 9), dh = draw(1, 2), dw = draw(1, 2);
      const std::int64_t top = draw(0, 4) % kh, left = draw(0, 4) % kw, bottom = draw(0, 4) % kh;
      const std::int64_t h = draw(1, 30) + (kh - 1) * dh, w = draw(1, 40) + (kw - 1) * dw, batch = draw(1, 2);
      const std::int64_t channels = kh * kw >= 49 ? draw(1, 33) : draw(1, 7);
      const ElementType from = seed % 4 == 1 ? ElementType::bf16 : ElementType::f32;
      const ElementType to = seed % 3 == 1 ? ElementType::bf16 : ElementType::f32;
      Pool p{
          with_gaps(dense_image(h, w, batch, channels, from), draw(0, 2)),
          with_gaps(
              dense_image(h + top + bottom - (kh - 1) * dh, w + left - (kw - 1) * dw, batch, channels, to),
              draw(0, 2)),
          {.height = kh, .width = kw, .dilation_h = dh, .dilation_w = dw, .pad_top = top, .pad_left = left}};
      if (p.x.batch * p.x.channels >= 16 && kh * kw < 49) continue;
      expect_the_same_maxima(p, seed);
      for (p.pooling = Pooling::average; p.pooling != Pooling::max;
           p.pooling = p.pooling == Pooling::average ? Pooling::average_with_padding : Pooling::max)
        check_forward(p, seed);
    }
    // Rows so long that a block holds few of them.
    Pool p{dense_image(40, 700, 1, 9),
           dense_image(40, 700, 1, 9),
           {.height = 9, .width = 9, .pad_top = 4, .pad_left = 4}};
    expect_the_same_maxima(p, 77);
    p.pooling = Pooling::average;
    check_forward(p, 78);
  });
}

TEST(Pool, sliding_windows_are_for_many_taps_or_few_channels) {
  Pool p{dense_image(9, 9, 1, 32),
         dense_image(9, 9, 1, 32),
         {.height = 3, .width = 3, .pad_top = 1, .pad_left = 1}};
  const auto slides = [](const Pool& pool) {
    return require_kernel(prepare_pool(pool))->info().name.ends_with("rows then columns");
  };
  EXPECT_FALSE(slides(p));
  p.x = p.y = dense_image(9, 9, 1, 1);
  EXPECT_TRUE(slides(p));
  p.save_argmax = true;
  EXPECT_FALSE(slides(p));
  p = {dense_image(9, 9, 1, 32),
       dense_image(9, 9, 1, 32),
       {.height = 5, .width = 5, .pad_top = 2, .pad_left = 2}};
  EXPECT_TRUE(slides(p));
}

TEST(Pool, refuses_what_it_cannot_do) {
  Pool p{dense_image(3, 3, 1, 4), dense_image(5, 3, 1, 4), {.height = 2, .width = 1, .pad_top = 2}};
  EXPECT_EQ("a window lies wholly in the padding", prepare_pool(p).error().reason);
  p = {dense_image(20, 20, 1, 4), dense_image(1, 1, 1, 4), {.height = 20, .width = 20, .stride_h = 2}};
  EXPECT_NE(std::string::npos, prepare_pool(p).error().reason.find("more than 256 taps"));
  p.y.channels = 3;
  EXPECT_EQ("input and output differ in their channels", prepare_pool(p).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
