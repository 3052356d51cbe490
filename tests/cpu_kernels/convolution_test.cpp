#include "superstep/target/cpu/kernels/convolution.h"

#include <gtest/gtest.h>

#include "superstep/target/cpu/kernels/weights.h"
#include "tests/cpu_kernels/check.h"
#include "tests/cpu_kernels/convolution_reference.h"

namespace superstep::kernels {
namespace {

GuardedBuffer random_weights(const Convolution& c, std::uint64_t seed) {
  GuardedBuffer w(ElementType::f32,
                  c.y.channels * (c.x.channels / c.groups) * c.window.height * c.window.width);
  w.fill_random(seed);
  return w;
}

GuardedBuffer random_pixels(const Image& image, std::uint64_t seed) {
  GuardedBuffer buffer(image.type, extent_of(image));
  buffer.fill_random(seed);
  return buffer;
}

GuardedBuffer packed(const Convolution& c, const GuardedBuffer& w, WeightLayout layout, ElementType type) {
  const WeightTransfer transfer = weight_transfer(c, layout, WeightOrder::out_in_taps, type);
  GuardedBuffer buffer(type, static_cast<std::int64_t>(packed_elements(transfer)));
  run_kernel(*require_kernel(prepare_pack(transfer)), {w.data()}, {buffer.data()});
  return buffer;
}

std::vector<double> elements(const Image& image, const GuardedBuffer& buffer) {
  std::vector<double> values;
  for_each_element(image, [&](std::int64_t h, std::int64_t w, std::int64_t n, std::int64_t c) {
    values.push_back(buffer.get(address_of(image, h, w, n, c)));
  });
  return values;
}

double terms_of(const Convolution& c) {
  return static_cast<double>(c.x.channels / c.groups * c.window.height * c.window.width);
}

// One pass with one implementation against the oracle.
enum class Pass { forward, input_gradient };

void check_pass(const Convolution& c, Pass pass, const std::string& implementation, std::uint64_t seed) {
  const bool forward = pass == Pass::forward;
  const auto& list = forward ? convolution_forward() : convolution_input_gradient();
  Prepared prepared = list.prepare(c, implementation);
  if (!prepared) return;  // what may refuse is tested apart
  const Image &source = forward ? c.x : c.y, &result = forward ? c.y : c.x;
  const GuardedBuffer s = random_pixels(source, seed), w = random_weights(c, seed + 1);
  const GuardedBuffer w_packed = packed(c, w, (*prepared)->info().weights, source.type);
  GuardedBuffer r = random_pixels(result, seed + 2);
  std::vector<Sum> expected = forward ? reference_forward(c, s, w) : reference_input_gradient(c, s, w);
  if (c.accumulate) {
    const std::vector<double> before = elements(result, r);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i].add(before[i]);
  }
  run_kernel(**prepared, {s.data(), w_packed.data()}, {r.data()});
  const std::vector<double> actual = elements(result, r);
  EXPECT_EQ(0, count_wrong(expected, terms_of(c) * (forward ? 1 : static_cast<double>(c.y.channels)),
                           result.type, [&](std::size_t i) { return actual[i]; }))
      << (forward ? "forward, " : "input gradient, ") << implementation << ", seed " << seed << ": "
      << describe(c);
}

void check_weight_gradient(Convolution c, const std::string& implementation, std::uint64_t seed) {
  c.bias_gradient = seed % 2 == 0;
  Prepared prepared = convolution_weight_gradient().prepare(c, implementation);
  if (!prepared) return;
  const GuardedBuffer x = random_pixels(c.x, seed), dy = random_pixels(c.y, seed + 1);
  const WeightTransfer transfer = weight_transfer(c, (*prepared)->info().weights);
  GuardedBuffer dw(ElementType::f32, static_cast<std::int64_t>(packed_elements(transfer)));
  GuardedBuffer unpacked(ElementType::f32, dw.size()), db(ElementType::f32, c.y.channels);
  db.fill(0.5);
  std::vector<void*> outputs{dw.data()};
  if (c.bias_gradient) outputs.push_back(db.data());
  run_kernel(**prepared, {x.data(), dy.data()}, outputs);
  run_kernel(**prepared, {x.data(), dy.data()}, outputs);  // accumulates
  run_kernel(*require_kernel(prepare_unpack(transfer)), {dw.data()}, {unpacked.data()});
  std::vector<Sum> expected = reference_weight_gradient(c, x, dy), bias = reference_bias_gradient(c, dy);
  for (Sum& sum : expected) sum = {2 * sum.value, 2 * sum.magnitude};
  const double terms = 2 * static_cast<double>(c.y.positions());
  EXPECT_EQ(0, count_wrong(expected, terms, ElementType::f32,
                           [&](std::size_t i) { return unpacked.get(static_cast<std::int64_t>(i)); }))
      << "weight gradient, " << implementation << ", seed " << seed << ": " << describe(c);
  if (!c.bias_gradient) return;
  for (Sum& sum : bias) sum = {2 * sum.value + 0.5, 2 * sum.magnitude + 0.5};
  EXPECT_EQ(0, count_wrong(bias, terms, ElementType::f32,
                           [&](std::size_t i) { return db.get(static_cast<std::int64_t>(i)); }))
      << "bias gradient, seed " << seed << ": " << describe(c);
}

TEST(Convolution, agrees_with_the_oracle_whatever_the_shape) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      Convolution c = random_convolution(seed);
      c.accumulate = seed % 4 == 0;
      for (const char* implementation : {"libxsmm", "portable"}) {
        check_pass(c, Pass::forward, implementation, seed);
        check_pass(c, Pass::input_gradient, implementation, seed);
        check_weight_gradient(c, implementation, seed);
      }
    }
  });
}

}  // namespace
}  // namespace superstep::kernels
