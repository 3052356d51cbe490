// Vector programs that sum up along axes, and instructions that several others are joined into.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

using Value = VectorProgram::Value;

double silu(double x) { return x / (1 + std::exp(-x)); }
double silu_slope(double x) {
  const double s = 1 / (1 + std::exp(-x));
  return s + x * s * (1 - s);
}
double hard_swish(double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }
double hard_swish_slope(double x) { return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1; }

// ---- sums

struct Images {
  std::int64_t positions, batch, channels;
  std::int64_t count() const { return positions * batch * channels; }
};

Images random_images(RandomStream& random) {
  static constexpr std::int64_t positions[] = {1, 2, 9, 49, 130}, channels[] = {1, 3, 16, 24, 72, 1100};
  return {positions[random.below(5)], 1 + static_cast<std::int64_t>(random.below(9)),
          channels[random.below(6)]};
}

// t = dy * silu'(x * f + s) with f and s a channel each, and a gate a sample and channel in front of dy.
struct Chain {
  explicit Chain(const Images& extents, std::uint64_t seed)
      : images(extents),
        x(ElementType::f32, extents.count()),
        dy(ElementType::f32, extents.count()),
        gate(ElementType::f32, extents.batch * extents.channels),
        factor(ElementType::f32, extents.channels),
        shift(ElementType::f32, extents.channels) {
    for (GuardedBuffer* buffer : {&x, &dy, &gate, &factor, &shift}) buffer->fill_random(seed++);
  }

  // The value at (p, n, c); its terms are as large as what the slope, which cancels near -1.3, is multiplied
  // by.
  Sum at(std::int64_t p, std::int64_t n, std::int64_t c) const {
    const std::int64_t i = (p * images.batch + n) * images.channels + c;
    const double t = dy.get(i) * gate.get(n * images.channels + c);
    return {t * silu_slope(x.get(i) * factor.get(c) + shift.get(c)), std::abs(t)};
  }

  // As a graph writes it: sigmoid, products and sums.
  Value write(VectorProgram& p, Value& image) const {
    const std::int64_t n = images.batch, c = images.channels;
    image = p.input(ElementType::f32, {n * c, c, 1});
    const Value gradient = p.input(ElementType::f32, {n * c, c, 1}), g = p.input(ElementType::f32, {0, c, 1});
    const Value f = p.input(ElementType::f32, {0, 0, 1}), s = p.input(ElementType::f32, {0, 0, 1});
    const Value normal = p.binary(VectorOp::add, p.binary(VectorOp::mul, image, f), s);
    const Value t = p.binary(VectorOp::mul, gradient, g), sigmoid = p.unary(VectorOp::sigmoid, normal);
    const Value rest = p.binary(VectorOp::mul, sigmoid, p.binary(VectorOp::sub, p.constant(1), sigmoid));
    return p.binary(VectorOp::add, p.binary(VectorOp::mul, t, sigmoid),
                    p.binary(VectorOp::mul, p.binary(VectorOp::mul, t, normal), rest));
  }
  std::vector<const void*> inputs() const {
    return {x.data(), dy.data(), gate.data(), factor.data(), shift.data()};
  }

  Images images;
  GuardedBuffer x, dy, gate, factor, shift;
};

void add(Sum& sum, const Sum& term, double factor = 1) {
  sum.value += term.value * factor;
  sum.magnitude += term.magnitude * std::abs(factor);
}

// The activation in f32 costs more digits than the sums: so many terms' worth.
constexpr double terms = 1000;

TEST(VectorProgramSums, planes_are_summed_in_any_number_of_parts) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      RandomStream random(seed);
      const Chain chain(random_images(random), seed);
      const auto [positions, batch, channels] = chain.images;
      const auto parts = static_cast<std::int64_t>(1 + random.below(5));
      VectorProgram p({positions, batch, channels});
      Value image;
      p.sum_planes(chain.write(p, image));
      p.sum_in_parts(parts);
      GuardedBuffer sums(ElementType::f32, parts * batch * channels);
      run_kernel(*require_kernel(prepare(p)), chain.inputs(), {sums.data()});
      std::vector<Sum> expected(static_cast<std::size_t>(batch * channels));
      for (std::int64_t i = 0; i < chain.images.count(); ++i)
        add(expected[static_cast<std::size_t>(i % (batch * channels))],
            chain.at(i / (batch * channels), i / channels % batch, i % channels));
      EXPECT_EQ(0, count_wrong(expected, terms, ElementType::f32,
                               [&](std::size_t i) {
                                 double sum = 0;
                                 for (std::int64_t part = 0; part < parts; ++part)
                                   sum += sums.get(part * batch * channels + static_cast<std::int64_t>(i));
                                 return sum;
                               }))
          << fmt::format("seed {}: {} x {} x {}", seed, positions, batch, channels);
    }
  });
}

TEST(VectorProgramSums, centred_sums_of_channels_are_made_beside_each_other) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      RandomStream random(seed);
      const Chain chain(random_images(random), seed);
      const auto [positions, batch, channels] = chain.images;
      const auto parts = static_cast<std::int64_t>(1 + random.below(5));
      GuardedBuffer centre(ElementType::f32, channels), sums(ElementType::f32, parts * 2 * channels);
      centre.fill_random(seed + 77);
      VectorProgram p({positions, batch, channels});
      Value image;
      const Value value = chain.write(p, image);
      p.sum_centred(value, image, p.input(ElementType::f32, {0, 0, 1}));
      p.sum_in_parts(parts);
      std::vector<const void*> inputs = chain.inputs();
      inputs.push_back(centre.data());
      run_kernel(*require_kernel(prepare(p)), inputs, {sums.data()});
      std::vector<Sum> expected(static_cast<std::size_t>(2 * channels));
      for (std::int64_t i = 0; i < chain.images.count(); ++i) {
        const std::int64_t c = i % channels;
        const Sum t = chain.at(i / (batch * channels), i / channels % batch, c);
        add(expected[static_cast<std::size_t>(c)], t);
        add(expected[static_cast<std::size_t>(channels + c)], t, chain.x.get(i) - centre.get(c));
      }
      EXPECT_EQ(0, count_wrong(expected, terms, ElementType::f32,
                               [&](std::size_t i) {
                                 double sum = 0;
                                 for (std::int64_t part = 0; part < parts; ++part)
                                   sum += sums.get(part * 2 * channels + static_cast<std::int64_t>(i));
                                 return sum;
                               }))
          << fmt::format("seed {}: {} x {} x {}", seed, positions, batch, channels);
    }
  });
}

TEST(VectorProgramSums, faulty_sums_are_refused) {
  const auto reason = [](const VectorProgram& p) { return prepare(p).error().reason; };
  VectorProgram p({4});
  p.sum_planes(p.input(ElementType::f32, {1}));
  EXPECT_EQ("there are no planes", reason(p));
  VectorProgram s({4, 4});
  const Value x = s.input(ElementType::f32, {4, 1});
  s.sum_centred(x, x, x);
  EXPECT_EQ("the center of a sum differs from row to row", reason(s));
}

// ---- joined instructions

struct Joined {
  const char* name;
  // The result from x, a factor, a shift and a cotangent, as graphs write it.
  std::function<Value(VectorProgram&, Value x, Value f, Value s, Value t)> write;
  std::function<double(double normal, double t)> exact;
  int instructions;  // that are left of it
};

Value affine(VectorProgram& p, Value x, Value f, Value s) {
  return p.binary(VectorOp::add, s, p.binary(VectorOp::mul, f, x));
}

// t s + (t x) (s (k - s)): the slope of silu where k is 1.
Value silu_gradient(VectorProgram& p, Value n, Value t, float k) {
  const Value s = p.unary(VectorOp::sigmoid, n);
  const Value rest = p.binary(VectorOp::mul, p.binary(VectorOp::sub, p.constant(k), s), s);
  return p.binary(VectorOp::add, p.binary(VectorOp::mul, rest, p.binary(VectorOp::mul, n, t)),
                  p.binary(VectorOp::mul, s, t));
}

Value hard_swish_gradient(VectorProgram& p, Value n, Value t, float bend) {
  const Value inner = p.binary(VectorOp::add, p.binary(VectorOp::div, n, p.constant(3)), p.constant(0.5f));
  const Value slope = p.select(p.binary(VectorOp::less, n, p.constant(bend)), inner, p.constant(1));
  return p.select(p.binary(VectorOp::less, p.constant(-3), n), p.binary(VectorOp::mul, t, slope),
                  p.constant(0));
}

std::vector<Joined> joined() {
  return {
      {"silu",
       [](auto& p, Value x, Value f, Value s, Value) {
         const Value n = affine(p, x, f, s);
         return p.binary(VectorOp::mul, p.unary(VectorOp::sigmoid, n), n);
       },
       [](double n, double) { return silu(n); }, 1},
      {"relu",
       [](auto& p, Value x, Value f, Value s, Value) { return p.unary(VectorOp::relu, affine(p, x, f, s)); },
       [](double n, double) { return std::max(n, 0.0); }, 1},
      {"hard swish",
       [](auto& p, Value x, Value f, Value s, Value) {
         return p.unary(VectorOp::activate, affine(p, x, f, s), Activation::hard_swish);
       },
       [](double n, double) { return hard_swish(n); }, 1},
      {"slope of silu",
       [](auto& p, Value x, Value f, Value s, Value t) { return silu_gradient(p, affine(p, x, f, s), t, 1); },
       [](double n, double t) { return t * silu_slope(n); }, 1},
      {"slope of hard swish",
       [](auto& p, Value x, Value f, Value s, Value t) {
         return hard_swish_gradient(p, affine(p, x, f, s), t, 3);
       },
       [](double n, double t) { return t * hard_swish_slope(n); }, 1},
      // What only looks like one of them stays what it is.
      {"no slope of silu",
       [](auto& p, Value x, Value f, Value s, Value t) { return silu_gradient(p, affine(p, x, f, s), t, 2); },
       [](double n, double t) {
         const double s = 1 / (1 + std::exp(-n));
         return t * s + t * n * s * (2 - s);
       },
       7},
      {"no slope of hard swish",
       [](auto& p, Value x, Value f, Value s, Value t) {
         return hard_swish_gradient(p, affine(p, x, f, s), t, 2);
       },
       [](double n, double t) { return n <= -3 ? 0
                                       : n < 2 ? t * (n / 3 + 0.5)
                                               : t; }, 8},
  };
}

TEST(VectorProgramJoined, activations_of_normalised_values_are_one_instruction) {
  for_each_instruction_set([] {
    for (const Joined& test : joined())
      for (const std::int64_t channels : {5, 16, 70}) {
        const std::int64_t rows = 90;
        GuardedBuffer x(ElementType::f32, rows * channels), t(ElementType::f32, rows * channels),
            f(ElementType::f32, channels), s(ElementType::f32, channels),
            y(ElementType::f32, rows * channels);
        x.fill_random(1, -4, 4), t.fill_random(2), f.fill_random(3, 0.5, 2), s.fill_random(4);
        VectorProgram p({rows, channels});
        const auto image = [&] { return p.input(ElementType::f32, {channels, 1}); };
        const auto vector = [&] { return p.input(ElementType::f32, {0, 1}); };
        const Value in_x = image(), in_f = vector(), in_s = vector(), in_t = image();
        p.store(test.write(p, in_x, in_f, in_s, in_t), ElementType::f32, {channels, 1});
        const KernelPointer kernel = require_kernel(prepare(p));
        EXPECT_TRUE(kernel->info().name.starts_with(
            fmt::format("vector program, {} instructions,", test.instructions)))
            << test.name << ": " << kernel->info().name;
        run_kernel(*kernel, {x.data(), f.data(), s.data(), t.data()}, {y.data()});
        double worst = 0;
        for (std::int64_t i = 0; i < rows * channels; ++i) {
          const double n = x.get(i) * f.get(i % channels) + s.get(i % channels);
          // A bend of the slope may be seen from the other side.
          if (std::abs(std::abs(n) - 3) < 1e-5 || std::abs(n - 2) < 1e-5) continue;
          worst = std::max(worst, std::abs(y.get(i) - test.exact(n, t.get(i))));
        }
        EXPECT_LT(worst, 4e-6) << test.name;
      }
  });
}

}  // namespace
}  // namespace superstep::kernels
