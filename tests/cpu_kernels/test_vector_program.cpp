#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/elementwise/vector_program.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

using Value = VectorProgram::Value;

// Distance in units of the last place of the f32 nearest to `exact`.
double ulps(float actual, double exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : 1e9;
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest)) return actual == nearest ? 0 : 1e9;
  const float next = std::nextafter(std::abs(nearest), std::numeric_limits<float>::infinity());
  const double unit = static_cast<double>(next) - static_cast<double>(std::abs(nearest));
  return std::abs(static_cast<double>(actual) - exact) / unit;
}

// Numbers of every magnitude, both signs, and the edges.
std::vector<float> hard_numbers(double low_exponent, double high_exponent, bool negative) {
  std::vector<float> values{0.0f,
                            1.0f,
                            0.5f,
                            2.0f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  RandomStream random(3);
  for (int i = 0; i < 20000; ++i)
    values.push_back(static_cast<float>(std::exp2(random.uniform(low_exponent, high_exponent))));
  if (negative)
    for (std::size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  return values;
}

std::vector<float> evaluate(const std::function<Value(VectorProgram&, Value)>& make, std::vector<float> x) {
  const auto n = static_cast<std::int64_t>(x.size());
  VectorProgram program({n});
  program.store(make(program, program.input(ElementType::f32, {1})), ElementType::f32, {1});
  std::vector<float> y(x.size());
  run_kernel(*require_kernel(prepare(program)), {x.data()}, {y.data()});
  return y;
}

struct Function {
  VectorOp op;
  double (*exact)(double);
  double allowed;    // units in the last place
  double low, high;  // exponents of the arguments
  bool negative = true;
};

constexpr double pi = 3.14159265358979323846;

const Function functions[] = {
    {VectorOp::exp, std::exp, 2, -20, 7},
    {VectorOp::log, std::log, 2, -140, 127, false},
    {VectorOp::sqrt, std::sqrt, 0.51, -126, 127, false},
    {VectorOp::rsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.6, -120, 120, false},
    {VectorOp::reciprocal, [](double x) { return 1 / x; }, 0.51, -120, 120},
    {VectorOp::square, [](double x) { return x * x; }, 0.51, -60, 60},
    {VectorOp::tanh, std::tanh, 3, -30, 5},
    {VectorOp::erf, std::erf, 3, -30, 4},
    {VectorOp::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 4, -20, 6.4},
    {VectorOp::sin, std::sin, 1, -20, 127},
    {VectorOp::cos, std::cos, 1, -20, 127},
    {VectorOp::tan, std::tan, 1, -20, 40},
    {VectorOp::asin, std::asin, 1, -30, 1},
    {VectorOp::acos, std::acos, 1, -30, 1},
    {VectorOp::atan, std::atan, 1, -30, 127},
    {VectorOp::sinh, std::sinh, 1, -30, 7},
    {VectorOp::cosh, std::cosh, 1, -30, 7},
    {VectorOp::asinh, std::asinh, 1, -30, 127},
    {VectorOp::acosh, std::acosh, 1, -2, 127},
    {VectorOp::atanh, std::atanh, 1, -30, 1},
    {VectorOp::floor, std::floor, 0, -5, 30},
    {VectorOp::ceil, std::ceil, 0, -5, 30},
    {VectorOp::round, std::nearbyint, 0, -5, 30},
    {VectorOp::round_half,
     [](double x) { return static_cast<double>(static_cast<float>(f16(static_cast<float>(x)))); }, 0, -26,
     18},
    {VectorOp::abs, std::fabs, 0, -20, 20},
    {VectorOp::neg, [](double x) { return -x; }, 0, -20, 20},
    {VectorOp::relu, [](double x) { return x < 0 ? 0.0 : x; }, 0, -20, 20},
    {VectorOp::sign, [](double x) { return x > 0   ? 1.0
                                           : x < 0 ? -1.0
                                                   : x; }, 0, -20, 20},
};

TEST(VectorProgram, functions_are_accurate) {
  for_each_instruction_set([] {
    for (const Function& f : functions) {
      const std::vector<float> x = hard_numbers(f.low, f.high, f.negative);
      const std::vector<float> y = evaluate([&](auto& p, Value v) { return p.unary(f.op, v); }, x);
      double worst = 0, at = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = ulps(y[i], f.exact(static_cast<double>(x[i])));
        if (error > worst) worst = error, at = static_cast<double>(x[i]);
      }
      EXPECT_LE(worst, f.allowed) << name_of(f.op) << " at " << at;
    }
  });
}

std::vector<float> evaluate_pairs(VectorOp op, const std::vector<float>& a, const std::vector<float>& b) {
  const auto n = static_cast<std::int64_t>(a.size());
  VectorProgram program({n});
  const Value first = program.input(ElementType::f32, {1}), second = program.input(ElementType::f32, {1});
  program.store(program.binary(op, first, second), ElementType::f32, {1});
  std::vector<float> y(a.size());
  run_kernel(*require_kernel(prepare(program)), {a.data(), b.data()}, {y.data()});
  return y;
}

// Bases of every magnitude and sign, exponents that leave the range of f32, and all pairs of the edges. A
// vector with a negative base is computed one by one: of the second half of the bases none is.
TEST(VectorProgram, powers_and_remainders_are_accurate) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float edges[] = {0.0f,
                         -0.0f,
                         1.0f,
                         -1.0f,
                         2.0f,
                         -3.0f,
                         0.5f,
                         -0.5f,
                         infinity,
                         -infinity,
                         std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::denorm_min()};
  std::vector<float> a, b;
  for (float x : edges)
    for (float y : edges) a.push_back(x), b.push_back(y);
  RandomStream random(5);
  for (int i = 0; i < 40000; ++i) {
    const bool negative = i < 20000 && i % 8 == 0;
    a.push_back(static_cast<float>(std::exp2(random.uniform(-40, 40))) * (negative ? -1.0f : 1.0f));
    b.push_back(static_cast<float>(i % 3 == 0 ? std::floor(random.uniform(-5, 5)) : random.uniform(-5, 5)));
  }
  for_each_instruction_set([&] {
    const std::vector<float> power = evaluate_pairs(VectorOp::pow, a, b),
                             rest = evaluate_pairs(VectorOp::remainder, a, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      EXPECT_LE(ulps(power[i], std::pow(x, y)), 1.7) << x << " to the power " << y;
      EXPECT_EQ(ulps(rest[i], std::fmod(x, y)), 0) << x << " mod " << y;
    }
  });
}

// Relative to the largest that silu and its slope can be for such an x; and what is far out on the left.
TEST(VectorProgram, silu_and_its_slope_are_accurate_everywhere) {
  const auto exact = [](double x, bool slope) {
    const double s = 1 / (1 + std::exp(-x));
    return slope ? s * (1 + x * (1 - s)) : x * s;
  };
  std::vector<float> x = hard_numbers(-20, 6.4, true);
  std::erase_if(x, [](float v) { return std::isinf(v) || std::isnan(v); });
  for_each_instruction_set([&] {
    for (bool slope : {false, true}) {
      const VectorOp op = slope ? VectorOp::activation_gradient : VectorOp::activate;
      const auto make = [&](VectorProgram& p, Value v) { return p.unary(op, v, Activation::silu); };
      const std::vector<float> y = evaluate(make, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double argument = static_cast<double>(x[i]), expected = exact(argument, slope);
        const double bound = 2e-7 * std::max(1.0, std::abs(argument)), near = argument > -20 ? 6e-7 : 1.5e-6;
        const double off = std::abs(static_cast<double>(y[i]) - expected);
        EXPECT_LE(off, bound) << argument;
        if (!slope && argument < 0) {
          EXPECT_LE(off, near * std::abs(expected) + 1e-43) << argument;
        }
      }
      const float infinity = std::numeric_limits<float>::infinity();
      const std::vector<float> far = evaluate(make, {-1e30f, -100.0f, -infinity, infinity, std::nanf("")});
      for (int i = 0; i < 3; ++i) EXPECT_LE(std::abs(far[static_cast<std::size_t>(i)]), 1.5e-36f) << i;
      if (!slope) {
        EXPECT_EQ(far[3], infinity);
      }
      EXPECT_TRUE(std::isnan(far[4]));
    }
  });
}

TEST(VectorProgram, logarithm_of_zero_and_below) {
  for_each_instruction_set([] {
    const std::vector<float> y =
        evaluate([](auto& p, Value v) { return p.unary(VectorOp::log, v); }, {0.0f, -0.0f, -1.0f});
    EXPECT_TRUE(std::isinf(y[0]) && y[0] < 0);
    EXPECT_TRUE(std::isinf(y[1]) && y[1] < 0);
    EXPECT_TRUE(std::isnan(y[2]));
  });
}

// ---- activations against their definitions, derivatives against differences of these

double exact_activation(Activation activation, double x, double alpha, double beta) {
  const double sigmoid = 1 / (1 + std::exp(-x));
  switch (activation) {
    case Activation::identity: return x;
    case Activation::relu: return std::max(x, 0.0);
    case Activation::leaky_relu: return x < 0 ? alpha * x : x;
    case Activation::sigmoid: return sigmoid;
    case Activation::tanh: return std::tanh(x);
    case Activation::gelu_erf: return x * (1 + std::erf(x / std::sqrt(2))) / 2;
    case Activation::gelu_tanh:
      return x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x))) / 2;
    case Activation::silu: return x * sigmoid;
    case Activation::hard_sigmoid: return std::min(std::max(alpha * x + beta, 0.0), 1.0);
    case Activation::hard_swish: return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    case Activation::clip: return std::min(std::max(x, alpha), beta);
    case Activation::elu: return x < 0 ? alpha * (std::exp(x) - 1) : x;
    case Activation::softplus: return x > 30 ? x : std::log1p(std::exp(x));
  }
  return 0;
}

struct ActivationCase {
  Activation activation;
  float alpha = 0, beta = 0;
};

const ActivationCase activations[] = {{Activation::identity},
                                      {Activation::relu},
                                      {Activation::leaky_relu, 0.01f},
                                      {Activation::sigmoid},
                                      {Activation::tanh},
                                      {Activation::gelu_erf},
                                      {Activation::gelu_tanh},
                                      {Activation::silu},
                                      {Activation::hard_sigmoid, 0.2f, 0.5f},
                                      {Activation::hard_swish},
                                      {Activation::clip, -0.7f, 1.3f},
                                      {Activation::elu, 1.0f},
                                      {Activation::softplus}};

std::vector<float> ordinary_numbers() {
  std::vector<float> x;
  RandomStream random(11);
  for (int i = 0; i < 3001; ++i) x.push_back(static_cast<float>(random.uniform(-8, 8)));
  return x;
}

TEST(VectorProgram, activations_follow_their_definitions) {
  for_each_instruction_set([] {
    const std::vector<float> x = ordinary_numbers();
    for (const auto& a : activations) {
      const auto y = evaluate(
          [&](auto& p, Value v) { return p.unary(VectorOp::activate, v, a.activation, a.alpha, a.beta); }, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double exact =
            exact_activation(a.activation, x[i], static_cast<double>(a.alpha), static_cast<double>(a.beta));
        ASSERT_NEAR(exact, y[i], 1e-6 * (1 + std::abs(exact))) << name_of(a.activation) << " at " << x[i];
      }
    }
  });
}

// GELU has an approximation of its own (vector_math-inl.h): from where it vanishes to where it is x, dense
// enough to meet the worst of it, and both ends beyond.
std::vector<float> numbers_of_gelu() {
  std::vector<float> x{0.0f, -0.0f, 1e-30f, -1e-30f, 60.0f, -60.0f, 1e30f, -1e30f};
  for (int i = -70000; i <= 70000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
  return x;
}

TEST(VectorProgram, gelu_follows_erf_over_its_range) {
  for_each_instruction_set([] {
    const std::vector<float> x = numbers_of_gelu();
    const auto y =
        evaluate([](auto& p, Value v) { return p.unary(VectorOp::activate, v, Activation::gelu_erf); }, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double t = static_cast<double>(x[i]), exact = t * (1 + std::erf(t / std::sqrt(2))) / 2;
      ASSERT_NEAR(exact, y[i], 2.5e-7 * std::abs(t)) << x[i];
      if (std::abs(t) >= 5.9) {
        ASSERT_EQ(std::max(x[i], 0.0f), y[i]) << x[i];
      }
    }
  });
}

TEST(VectorProgram, the_slope_of_gelu_follows_erf_over_its_range) {
  for_each_instruction_set([] {
    const std::vector<float> x = numbers_of_gelu();
    const auto slopes = evaluate(
        [](auto& p, Value v) { return p.unary(VectorOp::activation_gradient, v, Activation::gelu_erf); }, x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double t = static_cast<double>(x[i]);
      const double density = std::exp(-t * t / 2) / std::sqrt(2 * pi);
      ASSERT_NEAR((1 + std::erf(t / std::sqrt(2))) / 2 + t * density, slopes[i], 6e-7) << x[i];
    }
  });
}

TEST(VectorProgram, derivatives_are_slopes_of_the_activations) {
  for_each_instruction_set([] {
    const std::vector<float> x = ordinary_numbers();
    for (const auto& a : activations) {
      const auto value = [&](double t) {
        return exact_activation(a.activation, t, static_cast<double>(a.alpha), static_cast<double>(a.beta));
      };
      const bool from_output = gradient_from_output(a.activation, a.alpha);
      const auto slopes = evaluate(
          [&](auto& p, Value v) {
            return p.unary(VectorOp::activation_gradient, v, a.activation, a.alpha, a.beta);
          },
          x);
      const auto again =
          !from_output ? slopes
                       : evaluate(
                             [&](auto& p, Value v) {
                               const Value y = p.unary(VectorOp::activate, v, a.activation, a.alpha, a.beta);
                               return p.unary(VectorOp::output_gradient, y, a.activation, a.alpha, a.beta);
                             },
                             x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double h = 1e-5, t = static_cast<double>(x[i]);
        const double left = (value(t) - value(t - h)) / h, right = (value(t + h) - value(t)) / h;
        if (std::abs(left - right) > 1e-3) continue;  // a kink
        ASSERT_NEAR((left + right) / 2, slopes[i], 3e-5) << name_of(a.activation) << " at " << x[i];
        ASSERT_NEAR((left + right) / 2, again[i], 3e-5)
            << name_of(a.activation) << " from its output at " << x[i];
      }
    }
  });
}

// ---- random programs, bit for bit against one element at a time

float apply(const VectorProgram::Instruction& in, float a, float b, float c) {
  switch (in.op) {
    case VectorOp::neg: return -a;
    case VectorOp::abs: return std::abs(a);
    case VectorOp::relu: return a < 0 ? 0 : a;
    case VectorOp::add: return a + b;
    case VectorOp::sub: return a - b;
    case VectorOp::mul: return a * b;
    case VectorOp::max: return a > b ? a : b;
    case VectorOp::min: return a < b ? a : b;
    case VectorOp::less: return a < b ? 1.0f : 0.0f;
    case VectorOp::less_or_equal: return a <= b ? 1.0f : 0.0f;
    case VectorOp::equal: return a == b ? 1.0f : 0.0f;
    case VectorOp::logical_and: return a != 0 && b != 0 ? 1.0f : 0.0f;
    case VectorOp::logical_or: return a != 0 || b != 0 ? 1.0f : 0.0f;
    case VectorOp::select: return a != 0 ? b : c;
    default: ADD_FAILURE() << name_of(in.op); return 0;
  }
}

struct RandomProgram {
  explicit RandomProgram(std::uint64_t seed);
  // Scalar evaluation at one index.
  std::vector<float> values_at(const std::vector<std::int64_t>& index) const;

  VectorProgram program;
  std::vector<GuardedBuffer> inputs, outputs;
  std::vector<std::vector<std::int64_t>> output_strides;

 private:
  static std::vector<std::int64_t> random_extents(RandomStream& random);
  std::vector<std::int64_t> random_strides(RandomStream& random, bool written, std::int64_t& size) const;
};

std::vector<std::int64_t> RandomProgram::random_extents(RandomStream& random) {
  static constexpr std::int64_t kinds[] = {1, 2, 3, 5, 8, 16, 17, 33, 100};
  std::vector<std::int64_t> extents(random.below(4));
  std::int64_t count = 1;
  for (auto& extent : extents) {
    extent = kinds[random.below(std::size(kinds))];
    if (count * extent > 3000) extent = 1;
    count *= extent;
  }
  if (random.below(8) == 0) extents.assign(1, 2500);
  return extents;
}

// Row-major, sometimes with the first two axes exchanged, gaps, or (when read) broadcast.
std::vector<std::int64_t> RandomProgram::random_strides(RandomStream& random, bool written,
                                                        std::int64_t& size) const {
  const auto& extents = program.extents();
  std::vector<std::int64_t> strides(extents.size());
  const bool gaps = random.below(4) == 0;
  std::int64_t stride = random.below(8) == 0 ? 2 : 1;
  size = 1;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    if (!written && random.below(4) == 0) continue;
    strides[axis] = stride;
    size += (extents[axis] - 1) * stride;
    stride *= extents[axis];
    if (gaps) stride += static_cast<std::int64_t>(random.below(3));
  }
  return strides;
}

RandomProgram::RandomProgram(std::uint64_t seed) : program({}) {
  RandomStream random(seed);
  program = VectorProgram(random_extents(random));
  static constexpr ElementType readable[] = {ElementType::f32,     ElementType::f32, ElementType::f32,
                                             ElementType::bf16,    ElementType::u8,  ElementType::i32,
                                             ElementType::boolean, ElementType::f16, ElementType::i64,
                                             ElementType::f64,     ElementType::i8};
  std::int64_t size = 0;
  for (std::size_t i = 0, n = 1 + random.below(4); i < n; ++i) {
    const ElementType type = readable[random.below(std::size(readable))];
    program.input(type, random_strides(random, false, size));
    inputs.emplace_back(type, size);
    const bool is_small = type == ElementType::boolean;
    inputs.back().fill_random(seed + i, type == ElementType::u8 || is_small ? 0 : -3, is_small ? 2 : 3);
  }
  program.constant(0.75f);
  static constexpr VectorOp ops[] = {
      VectorOp::neg,   VectorOp::abs,         VectorOp::relu,       VectorOp::add,   VectorOp::sub,
      VectorOp::mul,   VectorOp::max,         VectorOp::min,        VectorOp::less,  VectorOp::less_or_equal,
      VectorOp::equal, VectorOp::logical_and, VectorOp::logical_or, VectorOp::select};
  const auto any = [&] { return static_cast<Value>(random.below(program.nodes().size())); };
  for (std::size_t i = 0, n = random.below(12); i < n; ++i) {
    const VectorOp op = ops[random.below(std::size(ops))];
    const Value a = any(), b = op >= VectorOp::add ? any() : -1, c = op >= VectorOp::fma ? any() : -1;
    program.ternary(op, a, b, c);
  }
  static constexpr ElementType writable[] = {
      ElementType::f32, ElementType::f32, ElementType::bf16, ElementType::i32, ElementType::u8,
      ElementType::f16, ElementType::f64, ElementType::i64,  ElementType::i8,  ElementType::boolean};
  for (std::size_t i = 0, n = 1 + random.below(3); i < n; ++i) {
    const ElementType type = writable[random.below(std::size(writable))];
    output_strides.push_back(random_strides(random, true, size));
    program.store(i == 0 ? static_cast<Value>(program.nodes().size() - 1) : any(), type,
                  output_strides.back());
    outputs.emplace_back(type, size);
  }
}

std::vector<float> RandomProgram::values_at(const std::vector<std::int64_t>& index) const {
  std::vector<float> values;
  std::size_t input = 0;
  for (const auto& node : program.nodes()) {
    if (node.kind == VectorProgram::Kind::constant) values.push_back(node.value);
    if (node.kind == VectorProgram::Kind::input) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * node.strides[i];
      values.push_back(static_cast<float>(inputs[input++].get(at)));
    }
    if (node.kind != VectorProgram::Kind::instruction) continue;
    const auto operand = [&](Value v) { return v < 0 ? 0.0f : values[static_cast<std::size_t>(v)]; };
    values.push_back(apply(node.instruction, operand(node.instruction.a), operand(node.instruction.b),
                           operand(node.instruction.c)));
  }
  return values;
}

double converted(float value, ElementType type) {
  switch (type) {
    case ElementType::bf16: return static_cast<double>(static_cast<float>(bf16(value)));
    case ElementType::f16: return static_cast<double>(static_cast<float>(f16(value)));
    case ElementType::boolean: return value != 0;
    case ElementType::u8: return std::trunc(std::min(std::max(value, 0.0f), 255.0f));
    case ElementType::i8: return std::trunc(std::min(std::max(value, -128.0f), 127.0f));
    case ElementType::i32:
    case ElementType::i64: return std::trunc(value);
    default: return static_cast<double>(value);
  }
}

template <class Body>
void for_each_index(const std::vector<std::int64_t>& extents, const Body& body) {
  std::vector<std::int64_t> index(extents.size());
  for (;;) {
    body(index);
    std::size_t axis = extents.size();
    while (axis-- > 0 && ++index[axis] == extents[axis]) index[axis] = 0;
    if (axis == static_cast<std::size_t>(-1)) return;
  }
}

TEST(VectorProgram, random_programs_give_the_bits_of_scalar_evaluation) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      RandomProgram random(seed);
      std::vector<const void*> in;
      std::vector<void*> out;
      for (auto& buffer : random.inputs) in.push_back(buffer.data());
      for (auto& buffer : random.outputs) out.push_back(buffer.data());
      run_kernel(*require_kernel(prepare(random.program)), in, out);
      int wrong = 0;
      for_each_index(random.program.extents(), [&](const std::vector<std::int64_t>& index) {
        const std::vector<float> values = random.values_at(index);
        for (std::size_t o = 0; o < random.outputs.size(); ++o) {
          std::int64_t at = 0;
          for (std::size_t i = 0; i < index.size(); ++i) at += index[i] * random.output_strides[o][i];
          const float value = values[static_cast<std::size_t>(random.program.outputs()[o].value)];
          wrong += random.outputs[o].get(at) != converted(value, random.outputs[o].type());
        }
      });
      EXPECT_EQ(0, wrong) << "seed " << seed;
    }
  });
}

TEST(VectorProgram, adds_up_all_but_the_last_axis) {
  for_each_instruction_set([] {
    for (const std::int64_t channels : {1, 3, 16, 40, 3000}) {
      const std::int64_t rows = 57;
      GuardedBuffer x(ElementType::f32, rows * channels), row_sum(ElementType::f32, channels);
      x.fill_random(5, 0, 1), row_sum.fill(1);
      VectorProgram p({3, 19, channels});
      const Value square = p.unary(VectorOp::square, p.input(ElementType::f32, {19 * channels, channels, 1}));
      p.sum_leading(square);
      run_kernel(*require_kernel(prepare(p)), {x.data()}, {row_sum.data()});
      std::vector<Sum> expected(static_cast<std::size_t>(channels));
      for (std::int64_t i = 0; i < rows * channels; ++i)
        expected[static_cast<std::size_t>(i % channels)].add(x.get(i) * x.get(i));
      EXPECT_EQ(0, count_wrong(expected, 1000, ElementType::f32,
                               [&](std::size_t i) { return row_sum.get(static_cast<std::int64_t>(i)); }))
          << channels;
    }
  });
}

// Rows of any length below a few vectors: parts of longer rows, a number for each row, every second element;
// what lies between rows and behind the last one is not read, nor anything written beyond the result.
TEST(VectorProgram, short_rows_are_read_where_they_lie) {
  for_each_instruction_set([] {
    for (std::int64_t n = 1; n <= 40; ++n) {
      const std::int64_t rows = 37, apart = n + 3, pairs = 2 * n + 1;
      GuardedBuffer part(ElementType::f32, (rows - 1) * apart + n), number(ElementType::f32, rows),
          second(ElementType::f32, (rows - 1) * pairs + 2 * n - 1), line(ElementType::f32, n),
          y(ElementType::f32, rows * n);
      part.fill_random(1, -2, 2), number.fill_random(2, -2, 2), second.fill_random(3, -2, 2);
      line.fill_random(4, -2, 2);
      for (std::int64_t row = 0; row + 1 < rows; ++row)
        for (std::int64_t i = n; i < apart; ++i)
          part.set(row * apart + i, std::numeric_limits<double>::quiet_NaN());
      VectorProgram p({rows, n});
      const Value a = p.input(ElementType::f32, {apart, 1}), b = p.input(ElementType::f32, {1, 0});
      const Value c = p.input(ElementType::f32, {pairs, 2}), d = p.input(ElementType::f32, {0, 1});
      p.store(p.binary(VectorOp::max, p.binary(VectorOp::sub, a, b), p.binary(VectorOp::sub, c, d)),
              ElementType::f32, {n, 1});
      run_kernel(*require_kernel(prepare(p)), {part.data(), number.data(), second.data(), line.data()},
                 {y.data()});
      int wrong = 0;
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < n; ++i) {
          const float left =
              static_cast<float>(part.get(row * apart + i)) - static_cast<float>(number.get(row));
          const float right =
              static_cast<float>(second.get(row * pairs + 2 * i)) - static_cast<float>(line.get(i));
          wrong += y.get(row * n + i) != static_cast<double>(std::max(left, right));
        }
      EXPECT_EQ(0, wrong) << "rows of " << n;
    }
  });
}

TEST(VectorProgram, works_in_place) {
  std::vector<float> x(1000, 2.0f), other(1000, 3.0f);
  VectorProgram p({10, 100});
  const Value a = p.input(ElementType::f32, {100, 1}), b = p.input(ElementType::f32, {100, 1});
  const Value sum = p.binary(VectorOp::add, a, b);
  const Value product = p.binary(VectorOp::mul, sum, a);
  p.store(product, ElementType::f32, {100, 1});
  p.store(a, ElementType::f32, {100, 1});
  run_kernel(*require_kernel(prepare(p)), {x.data(), other.data()}, {x.data(), other.data()});
  EXPECT_EQ(std::vector<float>(1000, 10.0f), x);
  EXPECT_EQ(std::vector<float>(1000, 2.0f), other);
}

TEST(VectorProgram, refuses_faulty_programs_and_says_why) {
  const auto reason = [](const VectorProgram& p) { return prepare(p).error().reason; };
  VectorProgram p({4});
  const Value x = p.input(ElementType::f32, {1});
  p.store(x, ElementType::f32, {0});
  EXPECT_EQ("an output writes an element twice", reason(p));
  VectorProgram q({4});
  q.store(q.unary(VectorOp::add, q.input(ElementType::f32, {1})), ElementType::f32, {1});
  EXPECT_EQ("add takes 2 operands", reason(q));
  VectorProgram r({4, 4});
  r.store(r.input(ElementType::f32, {1}), ElementType::f32, {4, 1});
  EXPECT_EQ("1 strides for 2 axes", reason(r));
  VectorProgram s({4});
  s.store(s.input(ElementType::u64, {1}), ElementType::f32, {1});
  EXPECT_EQ("cannot read u64", reason(s));
  VectorProgram t({4});
  t.store(7, ElementType::f32, {1});
  EXPECT_EQ("an output names a value that does not exist", reason(t));
  VectorProgram u({4});
  u.store(u.unary(VectorOp::output_gradient, u.input(ElementType::f32, {1}), Activation::silu),
          ElementType::f32, {1});
  EXPECT_EQ("the gradient of silu needs the activation's input", reason(u));
}

}  // namespace
}  // namespace superstep::kernels
