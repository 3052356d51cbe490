// Convolutions on bytes against naive loops in integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/bytes/byte_tile.h"
#include "superstep/target/cpu/kernels/bytes/integer_convolution.h"
#include "tests/contains.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/convolution_reference.h"
#include "tests/cpu_kernels/support/guarded_buffer.h"

namespace superstep::kernels {
namespace {

struct Operands {
  GuardedBuffer x, weights, packed, scale, factor, bias, added, added_bytes, y;
};

std::int64_t whole(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

// A random problem: channels in fours, gaps between columns and rows, every kind of window.
IntegerConvolution random_convolution(std::uint64_t seed, ElementType result) {
  RandomStream random(seed);
  IntegerConvolution c;
  c.groups = random.below(4) == 0 ? 2 : 1;
  const std::int64_t in = 4 * whole(random, 1, 5) * c.groups, out = whole(random, 1, 90) * c.groups;
  c.window = {.height = whole(random, 1, 3),
              .width = whole(random, 1, 3),
              .stride_h = whole(random, 1, 2),
              .stride_w = whole(random, 1, 2),
              .dilation_h = whole(random, 1, 2),
              .pad_top = whole(random, 0, 1),
              .pad_left = whole(random, 0, 1)};
  const std::int64_t height = whole(random, 3, 7), width = whole(random, 3, 7), batch = whole(random, 1, 5);
  c.x = dense_image(height, width, batch, in, ElementType::u8);
  c.x.column_stride += random.below(3) == 0 ? 4 * whole(random, 0, 2) : whole(random, 0, 3);
  c.x.row_stride = c.x.columns() * c.x.column_stride + whole(random, 0, 5);
  const std::int64_t rows =
      (height + 2 * c.window.pad_top - (c.window.height - 1) * c.window.dilation_h - 1) / c.window.stride_h +
      1;
  const std::int64_t columns = (width + 2 * c.window.pad_left - c.window.width) / c.window.stride_w + 1;
  c.y = dense_image(std::max<std::int64_t>(1, rows), std::max<std::int64_t>(1, columns), batch, out, result);
  c.y.column_stride += whole(random, 0, 3);
  c.y.row_stride = c.y.columns() * c.y.column_stride + whole(random, 0, 5);
  c.zero_point = random.below(2) == 0 ? 0 : static_cast<std::int32_t>(random.below(256));
  c.y_scale = 0.37f;
  c.y_zero_point = 93;
  return c;
}

Operands make_operands(const IntegerConvolution& c, std::uint64_t seed) {
  const std::int64_t taps = c.window.height * c.window.width;
  Operands o{image_buffer(c.x),
             GuardedBuffer(ElementType::i8, c.y.channels * (c.x.channels / c.groups) * taps),
             GuardedBuffer(ElementType::u8, static_cast<std::int64_t>((byte_pack_bytes(c) + 63) / 64 * 64)),
             GuardedBuffer(ElementType::f32, c.y.channels),
             GuardedBuffer(ElementType::f32, c.y.channels),
             GuardedBuffer(ElementType::f32, c.y.channels),
             GuardedBuffer(ElementType::f32, extent_of(c.y)),
             GuardedBuffer(ElementType::u8, extent_of(c.y)),
             image_buffer(c.y)};
  o.x.fill_random(seed, 0, 255);
  o.weights.fill_random(seed + 1, -127, 127);
  o.scale.fill_random(seed + 2, 1e-4, 3e-3);
  o.bias.fill_random(seed + 3, -5, 5);
  o.added.fill_random(seed + 4, -5, 5);
  o.factor.fill_random(seed + 5, -2, 2);
  o.added_bytes.fill_random(seed + 6, 0, 255);
  o.y.fill(0);
  return o;
}

// The sum for one output element, exactly.
std::int64_t naive_sum(const IntegerConvolution& c, Operands& o, std::int64_t h, std::int64_t w,
                       std::int64_t n, std::int64_t channel) {
  const std::int64_t in = c.x.channels / c.groups, out = c.y.channels / c.groups, group = channel / out;
  std::int64_t sum = 0;
  for (std::int64_t kh = 0; kh < c.window.height; ++kh)
    for (std::int64_t kw = 0; kw < c.window.width; ++kw) {
      const std::int64_t row = h * c.window.stride_h + kh * c.window.dilation_h - c.window.pad_top;
      const std::int64_t column = w * c.window.stride_w + kw * c.window.dilation_w - c.window.pad_left;
      if (row < 0 || row >= c.x.height || column < 0 || column >= c.x.width) continue;
      for (std::int64_t i = 0; i < in; ++i) {
        const std::int64_t x =
            o.x.as<std::uint8_t>()[c.x.offset(row, column) + n * c.x.column_stride + group * in + i];
        const std::int64_t tap = kh * c.window.width + kw, taps = c.window.height * c.window.width;
        sum += (x - c.zero_point) * o.weights.as<std::int8_t>()[(channel * in + i) * taps + tap];
      }
    }
  return sum;
}

double leaky(double v, double slope) { return v < 0 ? slope * v : v; }

// What the element should be under the epilogue that the test gave: bias, perhaps a tensor, a leaky relu.
double expected(const IntegerConvolution& c, Operands& o, std::int64_t sum, std::int64_t channel,
                std::int64_t at) {
  if (c.y.type == ElementType::i32) return static_cast<double>(sum);
  double v = static_cast<double>(sum) * o.scale.get(channel);
  for (const EpilogueStep& step : c.epilogue.steps) {
    if (step.op == EpilogueOp::scale_channels) v *= o.factor.get(channel);
    if (step.op == EpilogueOp::bias) v += o.bias.get(channel);
    if (step.op == EpilogueOp::add && step.type == ElementType::f32) v += o.added.get(at);
    if (step.op == EpilogueOp::add && step.type == ElementType::u8)
      v += (o.added_bytes.get(at) - static_cast<double>(step.beta)) * static_cast<double>(step.alpha);
    if (step.op == EpilogueOp::activate)
      v = step.activation == Activation::hard_swish ? v * std::clamp(v / 6 + 0.5, 0.0, 1.0)
                                                    : leaky(v, static_cast<double>(step.alpha));
  }
  if (c.y.type != ElementType::u8) return v;
  return std::clamp(std::nearbyint(v / static_cast<double>(c.y_scale)) + c.y_zero_point, 0.0, 255.0);
}

struct Faults {
  std::int64_t far = 0;   // beyond rounding
  std::int64_t near = 0;  // bytes beside their neighbour, where v / scale lies between two
  std::int64_t elements = 0;
};

Faults faults_of(const IntegerConvolution& c, Operands& o, double error = 0) {
  Faults faults;
  for (std::int64_t h = 0; h < c.y.height; ++h)
    for (std::int64_t w = 0; w < c.y.width; ++w)
      for (std::int64_t n = 0; n < c.y.batch; ++n)
        for (std::int64_t channel = 0; channel < c.y.channels; ++channel) {
          const std::int64_t at = c.y.offset(h, w) + n * c.y.column_stride + channel;
          const double want = expected(c, o, naive_sum(c, o, h, w, n, channel), channel, at);
          const double difference = std::abs(o.y.get(at) + error - want);
          const double allowed = c.y.type == ElementType::f32 ? 1e-5 * (10 + std::abs(want)) : 0;
          ++faults.elements;
          faults.near += c.y.type == ElementType::u8 && difference == 1;
          faults.far += difference > allowed && !(c.y.type == ElementType::u8 && difference == 1);
        }
  return faults;
}

// `in_parts`: as several threads would, the last part first.
void run(const Kernel& kernel, const IntegerConvolution& c, Operands& o, bool in_parts = false) {
  const auto pack = prepare_byte_pack(c, WeightOrder::out_in_taps);
  ASSERT_TRUE(pack) << to_string(pack.error());
  const void* stored = o.weights.data();
  void* packed = o.packed.data();
  (*pack)->run({{&stored, 1}, {&packed, 1}, nullptr});
  std::vector<const void*> inputs{o.x.data(), o.packed.data()};
  if (c.y.type != ElementType::i32) inputs.push_back(o.scale.data());
  for (const EpilogueStep& step : c.epilogue.steps) {
    if (step.op == EpilogueOp::scale_channels) inputs.push_back(o.factor.data());
    if (step.op == EpilogueOp::bias) inputs.push_back(o.bias.data());
    if (step.op == EpilogueOp::add)
      inputs.push_back(step.type == ElementType::u8 ? o.added_bytes.data() : o.added.data());
  }
  void* outputs[] = {o.y.data()};
  ASSERT_EQ(kernel.info().inputs, inputs.size());
  GuardedBuffer scratch(ElementType::f32, static_cast<std::int64_t>(kernel.info().scratch_bytes / 4));
  scratch.fill_bits();
  if (!in_parts) return kernel.run({inputs, outputs, scratch.data()});
  for (std::int64_t part = kernel.info().parts; part-- > 0;)
    kernel.run_part({inputs, outputs, scratch.data()}, part);
}

void check_all(ElementType result, const Epilogue& epilogue) {
  for_each_instruction_set([&] {
    Faults all;
    for (std::uint64_t seed = 0; seed < 60; ++seed)
      for (const auto& implementation : integer_convolution().all()) {
        IntegerConvolution c = random_convolution(seed, result);
        c.epilogue = epilogue;
        const Prepared kernel = implementation.prepare(c);
        if (!kernel) continue;
        Operands o = make_operands(c, seed);
        run(**kernel, c, o);
        const Faults faults = faults_of(c, o);
        ASSERT_EQ(faults.far, 0) << implementation.name << ", seed " << seed;
        all.near += faults.near;
        all.elements += faults.elements;
      }
    EXPECT_LT(static_cast<double>(all.near), 1e-4 * static_cast<double>(all.elements));
    EXPECT_GT(all.elements, 1000);
  });
}

TEST(IntegerConvolution, SumsAreExact) { check_all(ElementType::i32, {}); }
TEST(IntegerConvolution, ScalesBiasesAndRectifies) {
  check_all(ElementType::f32, Epilogue{}.bias().activate(Activation::leaky_relu, 0.01f));
}
TEST(IntegerConvolution, AddsTensors) {
  check_all(ElementType::f32, Epilogue{}.bias().add().activate(Activation::leaky_relu, 0.2f));
}
TEST(IntegerConvolution, AddsBytes) {
  check_all(ElementType::f32, Epilogue{}.bias().add_bytes(0.03f, 117).activate(Activation::leaky_relu, 0.2f));
  check_all(ElementType::u8, Epilogue{}.scale_channels().add_bytes(0.05f, 0).activate(Activation::relu));
  check_all(ElementType::u8,
            Epilogue{}.scale_channels().add_bytes(0.05f, 9).bias().activate(Activation::relu));
  // Not in registers: a slope above one, and another step behind.
  check_all(ElementType::f32, Epilogue{}.add_bytes(0.03f, 117).activate(Activation::leaky_relu, 1.5f));
  check_all(ElementType::u8, Epilogue{}.activate(Activation::relu).add_bytes(0.03f, 12).bias());
}
TEST(IntegerConvolution, GivesBytes) {
  check_all(ElementType::u8, Epilogue{}.bias().activate(Activation::relu));
}
TEST(IntegerConvolution, GivesBytesAfterASum) {
  check_all(ElementType::u8, Epilogue{}.add().activate(Activation::relu));
}
TEST(IntegerConvolution, TakesStepsInAnyOrder) {
  check_all(ElementType::f32, Epilogue{}.activate(Activation::leaky_relu, 0.1f).bias().add());
  check_all(ElementType::u8, Epilogue{}.add().bias());
}
TEST(IntegerConvolution, GivesBytesAfterAnyEpilogue) {
  check_all(ElementType::u8, Epilogue{}.bias().add().activate(Activation::leaky_relu, 0.1f));
}

TEST(IntegerConvolution, ScalesChannelsOnceMore) {
  check_all(ElementType::f32,
            Epilogue{}.scale_channels().bias().add().activate(Activation::leaky_relu, 0.3f));
  check_all(ElementType::u8, Epilogue{}.scale_channels().bias().activate(Activation::relu));
  check_all(ElementType::u8, Epilogue{}.bias().scale_channels());
}
TEST(IntegerConvolution, TakesHardSwish) {
  check_all(ElementType::f32, Epilogue{}.scale_channels().bias().activate(Activation::hard_swish));
  check_all(ElementType::u8, Epilogue{}.bias().activate(Activation::hard_swish));
  // Not in registers: behind a sum, and with another step behind.
  check_all(ElementType::u8, Epilogue{}.bias().add().activate(Activation::hard_swish));
  check_all(ElementType::f32, Epilogue{}.activate(Activation::hard_swish).bias());
}
TEST(IntegerConvolution, TakesSlopesAboveOne) {
  check_all(ElementType::f32, Epilogue{}.bias().activate(Activation::leaky_relu, 1.5f));
}

// As if this processor gained by one way of reading weights that the first-level cache does not hold.
struct AssumedDeepWeights {
  explicit AssumedDeepWeights(DeepWeights weights) { assumed_deep_weights = weights; }
  ~AssumedDeepWeights() { assumed_deep_weights = DeepWeights::measured; }
  AssumedDeepWeights(const AssumedDeepWeights&) = delete;
  AssumedDeepWeights& operator=(const AssumedDeepWeights&) = delete;
};

// Weights that are taken in pieces: parts of a tap, and several taps; a narrower last panel, two samples, two
// groups.
TEST(IntegerConvolution, TakesWeightsInPieces) {
  const AssumedDeepWeights assumed(DeepWeights::pieces);
  struct Case {
    std::int64_t side, in, out, taps, batch, groups;
  };
  for (const Case& layer :
       {Case{5, 1200, 70, 1, 1, 1}, Case{5, 600, 100, 3, 1, 1}, Case{4, 40, 40, 3, 2, 2}}) {
    IntegerConvolution c;
    c.groups = layer.groups;
    c.x = dense_image(layer.side, layer.side, layer.batch, layer.in * layer.groups, ElementType::u8);
    c.y = dense_image(layer.side, layer.side, layer.batch, layer.out * layer.groups, ElementType::f32);
    c.window.height = c.window.width = layer.taps;
    c.window.pad_top = c.window.pad_left = layer.taps / 2;
    c.zero_point = 117;
    for (const Epilogue& added :
         {Epilogue{}.bias().add(), Epilogue{}.bias().add_bytes(0.04f, 131),
          Epilogue{}.scale_channels().add_bytes(0.04f, 131).bias(), Epilogue{}.bias()}) {
      c.epilogue = added;
      c.epilogue.activate(added.steps.size() == 1 ? Activation::hard_swish : Activation::relu);
      std::size_t gathered = 0;
      for (const auto& implementation : integer_convolution().all()) {
        const Prepared kernel = implementation.prepare(c);
        if (!kernel) continue;
        gathered += implementation.name == std::string_view("gathered positions");
        for (const bool in_parts : {false, true}) {
          Operands o = make_operands(c, 7);
          run(**kernel, c, o, in_parts);
          EXPECT_EQ(faults_of(c, o).far, 0) << implementation.name;
        }
      }
      EXPECT_EQ(gathered, byte_products() == ByteProducts::quads ? 1 : 0) << layer.in;
    }
  }
}

// Where pieces gain nothing they are for short rows alone.
TEST(IntegerConvolution, TakesDeepWeightsInPiecesWhereThatGains) {
  const IntegerConvolution deep = integer_dense_layer(30, 1200, 64, ElementType::f32);
  IntegerConvolution rows = deep;
  rows.x = dense_image(7, 7, 1, 64, ElementType::u8);
  rows.y = dense_image(7, 7, 1, 64, ElementType::f32);
  rows.window.height = rows.window.width = 3;
  rows.window.pad_top = rows.window.pad_left = 1;
  const auto gathers = [](const IntegerConvolution& c) {
    return require_kernel(integer_convolution().prepare(c))->info().name.find("gathered") !=
           std::string::npos;
  };
  if (byte_products() != ByteProducts::quads) GTEST_SKIP() << "gathered products of bytes need AVX-512 VNNI";
  {
    const AssumedDeepWeights pieces(DeepWeights::pieces);
    EXPECT_TRUE(gathers(deep));
    EXPECT_TRUE(gathers(rows));
  }
  {
    const AssumedDeepWeights whole(DeepWeights::whole);
    EXPECT_FALSE(gathers(deep));
    EXPECT_TRUE(gathers(rows));
  }
}

// Pictures of one to three channels: rows of the window are summed together. Gaps, samples, padding on all
// sides.
TEST(IntegerConvolution, SumsRowsOfFewChannels) {
  for_each_instruction_set([&] {
    std::int64_t taken = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed)
      for (const ElementType result : {ElementType::f32, ElementType::u8})
        for (const Epilogue& added :
             {Epilogue{}.bias(), Epilogue{}.bias().add(), Epilogue{}.add_bytes(0.04f, 99)}) {
          RandomStream random(seed);
          IntegerConvolution c;
          const std::int64_t height = whole(random, 5, 20), width = whole(random, 8, 40),
                             batch = whole(random, 1, 3);
          c.window = {.height = whole(random, 1, 7),
                      .width = whole(random, 2, 7),
                      .stride_h = whole(random, 1, 3),
                      .stride_w = whole(random, 1, 3),
                      .dilation_h = whole(random, 1, 2),
                      .pad_top = whole(random, 0, 3),
                      .pad_left = whole(random, 0, 3)};
          const std::int64_t under = (c.window.height - 1) * c.window.dilation_h + 1;
          if (height + 2 * c.window.pad_top < under) continue;
          c.x = dense_image(height, width, batch, whole(random, 1, 3), ElementType::u8);
          c.x.column_stride += whole(random, 0, 2);
          c.x.row_stride = c.x.columns() * c.x.column_stride + whole(random, 0, 5);
          c.y = dense_image((height + 2 * c.window.pad_top - under) / c.window.stride_h + 1,
                            (width + 2 * c.window.pad_left - c.window.width) / c.window.stride_w + 1, batch,
                            whole(random, 1, 90), result);
          c.y.column_stride += whole(random, 0, 3);
          c.y.row_stride = c.y.columns() * c.y.column_stride + whole(random, 0, 5);
          c.zero_point = static_cast<std::int32_t>(random.below(256));
          c.y_scale = 0.37f;
          c.y_zero_point = 93;
          c.epilogue = added;
          c.epilogue.activate(Activation::leaky_relu, 0.1f);
          const Prepared kernel = integer_convolution().prepare(c);
          ASSERT_EQ(kernel.has_value(), byte_products() != ByteProducts::none) << seed;
          if (!kernel) continue;
          ++taken;
          EXPECT_TRUE((*kernel)->info().name.contains("rows of few channels")) << (*kernel)->info().name;
          for (const bool in_parts : {false, true}) {
            Operands o = make_operands(c, seed);
            run(**kernel, c, o, in_parts);
            ASSERT_EQ(faults_of(c, o).far, 0) << seed;
          }
        }
    EXPECT_EQ(taken > 100, byte_products() != ByteProducts::none);
  });
}

TEST(IntegerConvolution, PartsTogetherAreTheWhole) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    IntegerConvolution c = random_convolution(seed, ElementType::f32);
    c.epilogue.bias().activate(Activation::relu);
    const Prepared kernel = integer_convolution().prepare(c);
    ASSERT_TRUE(kernel);
    Operands whole = make_operands(c, seed), parts = make_operands(c, seed);
    run(**kernel, c, whole);
    run(**kernel, c, parts, true);
    for_each_element(c.y, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t channel) {
      const std::int64_t at = address_of(c.y, h, w, n, channel);
      ASSERT_EQ(whole.y.get(at), parts.y.get(at)) << seed;
    });
  }
}

TEST(IntegerConvolution, AWrongSumIsNoticed) {
  const IntegerConvolution c = random_convolution(3, ElementType::i32);
  Operands o = make_operands(c, 3);
  const Prepared kernel = integer_convolution().prepare(c);
  ASSERT_TRUE(kernel);
  run(**kernel, c, o);
  const Faults faults = faults_of(c, o, 1);
  EXPECT_EQ(faults.far, faults.elements);
}

TEST(IntegerConvolution, AWrongZeroPointIsNoticed) {
  IntegerConvolution c = random_convolution(5, ElementType::i32);
  c.zero_point = 17;
  Operands o = make_operands(c, 5);
  const Prepared kernel = integer_convolution().prepare(c);
  ASSERT_TRUE(kernel);
  run(**kernel, c, o);
  c.zero_point = 18;
  EXPECT_GT(faults_of(c, o).far, faults_of(c, o).elements / 2);
}

TEST(IntegerConvolution, RefusesWhatItCannotMultiply) {
  const auto reason = [](const IntegerConvolution& c) {
    const Prepared kernel = integer_convolution().prepare(c);
    return kernel ? std::string() : to_string(kernel.error());
  };
  IntegerConvolution narrow = integer_dense_layer(4, 6, 8, ElementType::f32);
  EXPECT_TRUE(contains(reason(narrow), "not a multiple of 4"));
  IntegerConvolution floating = integer_dense_layer(4, 8, 8, ElementType::f32);
  floating.x.type = ElementType::f32;
  EXPECT_TRUE(contains(reason(floating), "the input must be u8"));
  IntegerConvolution scaled = integer_dense_layer(4, 8, 8, ElementType::u8);
  scaled.y_scale = 0;
  EXPECT_TRUE(contains(reason(scaled), "scale is not positive"));
  IntegerConvolution sums = integer_dense_layer(4, 8, 8, ElementType::i32);
  sums.epilogue.bias();
  EXPECT_TRUE(contains(reason(sums), "have no epilogue"));
}

}  // namespace
}  // namespace superstep::kernels
