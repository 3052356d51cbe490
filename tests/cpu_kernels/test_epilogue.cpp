// Epilogues behind convolutions and products, against the same steps in f64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/convolution/convolution.h"
#include "superstep/target/cpu/kernels/core/epilogue.h"
#include "superstep/target/cpu/kernels/product/matmul.h"
#include "superstep/target/cpu/kernels/product/weights.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

double activate(const EpilogueStep& s, double v) {
  const double a = static_cast<double>(s.alpha);
  switch (s.activation) {
    case Activation::relu: return v < 0 ? 0 : v;
    case Activation::leaky_relu: return v < 0 ? a * v : v;
    case Activation::sigmoid: return 1 / (1 + std::exp(-v));
    case Activation::tanh: return std::tanh(v);
    case Activation::gelu_erf: return v * (1 + std::erf(v / std::sqrt(2.0))) / 2;
    case Activation::gelu_tanh:
      return v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))) / 2;
    case Activation::hard_swish: return v * std::clamp(v / 6 + 0.5, 0.0, 1.0);
    case Activation::clip: return std::clamp(v, a, static_cast<double>(s.beta));
    case Activation::silu: return v / (1 + std::exp(-v));
    default: return v;
  }
}

// activation'(.) from the saved tensor's element t.
double slope(const EpilogueStep& s, double t) {
  const double a = static_cast<double>(s.alpha), sigmoid = 1 / (1 + std::exp(-t));
  switch (s.activation) {
    case Activation::relu: return t > 0 ? 1 : 0;
    case Activation::leaky_relu: return t > 0 ? 1 : a;
    case Activation::sigmoid: return t * (1 - t);
    case Activation::tanh: return 1 - t * t;
    case Activation::silu: return sigmoid * (1 + t * (1 - sigmoid));
    default: return 1;
  }
}

EpilogueStep random_step(RandomStream& random) {
  static constexpr EpilogueOp ops[] = {
      EpilogueOp::bias,     EpilogueOp::scale_channels, EpilogueOp::scale,    EpilogueOp::add,
      EpilogueOp::subtract, EpilogueOp::multiply,       EpilogueOp::activate, EpilogueOp::activation_gradient,
      EpilogueOp::save};
  static constexpr Activation forward[] = {Activation::relu, Activation::leaky_relu, Activation::sigmoid,
                                           Activation::tanh, Activation::gelu_erf,   Activation::silu};
  static constexpr Activation backward[] = {Activation::relu, Activation::leaky_relu, Activation::sigmoid,
                                            Activation::tanh, Activation::silu};
  EpilogueStep step{.op = ops[random.below(9)], .alpha = 0.1f};
  if (step.op == EpilogueOp::activate) step.activation = forward[random.below(6)];
  if (step.op == EpilogueOp::activation_gradient) {
    step.activation = backward[random.below(5)];
    step.from_output = gradient_from_output(step.activation, step.alpha);
  }
  if (random.below(3) == 0) step.type = ElementType::bf16;
  if (step.op == EpilogueOp::multiply && random.below(3) == 0) step.type = ElementType::u8;
  return step;
}

// The lists that have loops of their own, and random ones.
Epilogue make_epilogue(std::uint64_t seed) {
  const ElementType type = seed / 14 % 2 == 0 ? ElementType::f32 : ElementType::bf16;
  switch (seed % 14) {
    case 0: return Epilogue().bias();
    case 1: return Epilogue().bias().activate(Activation::leaky_relu, 0.01f);
    case 2: return Epilogue().bias().add(type).activate(Activation::relu);
    case 3: return Epilogue().add(type).activation_gradient(Activation::leaky_relu, 0.01f, 0, type);
    case 4: return Epilogue().activation_gradient(Activation::relu, 0, 0, type);
    case 5: return Epilogue().add().add();
    case 6: return Epilogue().add().add().add();
    case 7: return Epilogue().bias().activate(Activation::tanh);
    case 8: return Epilogue().bias().activation_gradient(Activation::relu, 0, 0, type);
    case 9: return Epilogue().add().bias().activation_gradient(Activation::leaky_relu, 0.01f);
    case 10: return Epilogue().bias().add(type).activation_gradient(Activation::relu);
    default: break;
  }
  RandomStream random(seed);
  Epilogue epilogue;
  for (std::size_t i = 0, n = random.below(5); i < n; ++i) epilogue.steps.push_back(random_step(random));
  return epilogue;
}

bool is_vector(EpilogueOp op) { return op == EpilogueOp::bias || op == EpilogueOp::scale_channels; }
bool is_tensor(EpilogueOp op) { return op == EpilogueOp::save || EpilogueStep{.op = op}.reads_tensor(); }

// The operands of a list over tensors of `elements` values with `channels` channels.
struct Operands {
  Operands(const Epilogue& list, std::int64_t elements, std::int64_t channels, std::uint64_t seed)
      : epilogue(list) {
    for (const EpilogueStep& step : epilogue.steps) {
      buffers.emplace_back(is_vector(step.op) ? ElementType::f32 : step.type, is_vector(step.op)   ? channels
                                                                              : is_tensor(step.op) ? elements
                                                                                                   : 0);
      const bool mask = buffers.back().type() == ElementType::u8;
      buffers.back().fill_random(seed++, mask ? 0 : -1, mask ? 2 : 1);
    }
  }

  void append(std::vector<const void*>& inputs, std::vector<void*>& outputs) {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const EpilogueOp op = epilogue.steps[i].op;
      if (op == EpilogueOp::save)
        outputs.push_back(buffers[i].data());
      else if (is_vector(op) || is_tensor(op))
        inputs.push_back(buffers[i].data());
    }
  }

  // The result at an address and channel; `saves` collects what save steps should have written there.
  double apply(double v, std::int64_t address, std::int64_t channel, std::vector<double>& saves) const {
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      const EpilogueStep& s = epilogue.steps[i];
      const auto operand = [&] { return buffers[i].get(is_vector(s.op) ? channel : address); };
      switch (s.op) {
        case EpilogueOp::bias:
        case EpilogueOp::add: v += operand(); break;
        case EpilogueOp::subtract: v -= operand(); break;
        case EpilogueOp::scale_channels:
        case EpilogueOp::multiply: v *= operand(); break;
        case EpilogueOp::scale: v *= static_cast<double>(s.alpha); break;
        case EpilogueOp::activate: v = activate(s, v); break;
        case EpilogueOp::activation_gradient: v *= slope(s, operand()); break;
        case EpilogueOp::round_half:
          v = static_cast<double>(static_cast<float>(f16(static_cast<float>(v))));
          break;
        case EpilogueOp::save: saves.push_back(v); break;
      }
    }
    return v;
  }

  // How far the saved tensors are from `saves`, relative to the rounding of their type.
  bool saved(std::int64_t address, const std::vector<double>& saves) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (epilogue.steps[i].op != EpilogueOp::save) continue;
      const double exact = saves[next++], rounding = epilogue.steps[i].type == ElementType::bf16 ? 0x1p-8 : 0;
      if (std::abs(buffers[i].get(address) - exact) > 2e-5 + (rounding + 1e-5) * std::abs(exact))
        return false;
    }
    return true;
  }

  Epilogue epilogue;
  std::vector<GuardedBuffer> buffers;
};

void check_convolution(Convolution c, std::uint64_t seed, bool forward, ElementType result_type) {
  (forward ? c.y : c.x).type = result_type;
  const Image &source = forward ? c.x : c.y, &result = forward ? c.y : c.x;
  const KernelPointer kernel =
      require_kernel((forward ? convolution_forward() : convolution_input_gradient()).prepare(c));
  GuardedBuffer s = image_buffer(source), r = image_buffer(result);
  const WeightTransfer transfer = weight_transfer(c, kernel->info().weights);
  GuardedBuffer w(ElementType::f32,
                  c.y.channels * (c.x.channels / c.groups) * c.window.height * c.window.width);
  GuardedBuffer packed(ElementType::f32, static_cast<std::int64_t>(packed_elements(transfer)));
  s.fill_random(seed), w.fill_random(seed + 1, -0.3, 0.3);
  run_kernel(*require_kernel(prepare_pack(transfer)), {w.data()}, {packed.data()});
  Operands operands(c.epilogue, extent_of(result), result.channels, seed + 2);
  std::vector<const void*> inputs{s.data(), packed.data()};
  std::vector<void*> outputs{r.data()};
  operands.append(inputs, outputs);
  run_kernel(*kernel, inputs, outputs);

  const std::vector<Sum> sums = forward ? reference_forward(c, s, w) : reference_input_gradient(c, s, w);
  std::size_t next = 0;
  int wrong = 0;
  for_each_element(result, [&](std::int64_t h, std::int64_t x, std::int64_t n, std::int64_t channel) {
    const std::int64_t address = address_of(result, h, x, n, channel);
    std::vector<double> saves;
    const double exact = operands.apply(sums[next++].value, address, channel, saves);
    const double rounding = result.type == ElementType::bf16 ? 0x1p-8 : 0;
    wrong += std::abs(r.get(address) - exact) > 2e-5 + (rounding + 1e-5) * std::abs(exact);
    wrong += !operands.saved(address, saves);
  });
  EXPECT_EQ(0, wrong) << "seed " << seed << " " << kernel->info().name << ": " << describe(c);
}

TEST(Epilogue, behind_convolutions) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 64; ++seed) {
      Convolution c = random_convolution(seed);
      c.epilogue = make_epilogue(seed);
      check_convolution(c, seed, true, seed % 5 == 4 ? ElementType::bf16 : ElementType::f32);
      check_convolution(c, seed, false, seed % 7 == 6 ? ElementType::bf16 : ElementType::f32);
    }
  });
}

// Each activation behind a product and behind a depthwise convolution, by whole vectors and by the last few
// channels.
TEST(Epilogue, activations_are_rounded_once_where_results_are_bf16) {
  static constexpr Activation last[] = {Activation::relu,     Activation::leaky_relu, Activation::tanh,
                                        Activation::gelu_erf, Activation::gelu_tanh,  Activation::silu,
                                        Activation::clip,     Activation::hard_swish};
  for_each_instruction_set([] {
    std::uint64_t seed = 0;
    for (const Activation activation : last)
      for (const bool biased : {false, true})
        for (const std::int64_t groups : {1, 71}) {
          Convolution c;
          c.window = {.height = groups > 1 ? 3 : 1, .width = groups > 1 ? 5 : 1};
          c.x = dense_image(5, 17, 2, 71);
          c.y = dense_image(6 - c.window.height, 18 - c.window.width, 2, 71);
          c.groups = groups;
          if (biased) c.epilogue.bias();
          c.epilogue.activate(activation, activation == Activation::clip ? -0.25f : 0.1f, 0.5f);
          for (const ElementType type : {ElementType::f32, ElementType::bf16})
            check_convolution(c, ++seed, true, type);
        }
  });
}

// The columns that a stride leaves of a single channel, fewer and more than are brought together at a time.
TEST(Epilogue, of_a_single_channel_whose_columns_lie_apart) {
  for_each_instruction_set([] {
    for (const std::int64_t batch : {1, 3, 70})
      for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
        Convolution c;
        c.window = {.height = 4, .width = 4, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
        c.x = dense_image(12, 18, batch, 1);
        c.y = dense_image(6, 9, batch, 16);
        c.epilogue = Epilogue().bias().scale_channels().activate(Activation::sigmoid);
        check_convolution(c, 5, false, type);
        c.epilogue = Epilogue().bias().add(type).activate(Activation::tanh);
        check_convolution(c, 6, false, type);
      }
  });
}

void check_matmul(std::uint64_t seed) {
  RandomStream random(seed);
  const auto pick = [&] { return 1 + static_cast<std::int64_t>(random.below(90)); };
  Matmul m;
  m.batch = {2, 1}, m.rows = pick(), m.columns = pick(), m.inner = pick();
  m.a = {{m.rows * m.inner, 0}, m.inner, 1}, m.b = {{m.inner * m.columns, 0}, m.columns, 1};
  m.c = {{m.rows * m.columns, 0}, m.columns, 1};
  if (m.columns == 1) return;  // either dimension could be the channels
  m.epilogue = make_epilogue(seed);
  const KernelPointer kernel = require_kernel(matmul().prepare(m));
  GuardedBuffer a(ElementType::f32, 2 * m.rows * m.inner), b(ElementType::f32, 2 * m.inner * m.columns);
  GuardedBuffer c(ElementType::f32, 2 * m.rows * m.columns);
  a.fill_random(seed, -0.3, 0.3), b.fill_random(seed + 1);
  Operands operands(m.epilogue, c.size(), m.columns, seed + 2);
  std::vector<const void*> inputs{a.data(), b.data()};
  std::vector<void*> outputs{c.data()};
  operands.append(inputs, outputs);
  run_kernel(*kernel, inputs, outputs);
  int wrong = 0;
  for (std::int64_t i = 0; i < 2 * m.rows; ++i)
    for (std::int64_t j = 0; j < m.columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < m.inner; ++k)
        sum += a.get(i * m.inner + k) * b.get((i / m.rows * m.inner + k) * m.columns + j);
      std::vector<double> saves;
      const double exact = operands.apply(sum, i * m.columns + j, j, saves);
      wrong += std::abs(c.get(i * m.columns + j) - exact) > 2e-5 + 1e-5 * std::abs(exact);
      wrong += !operands.saved(i * m.columns + j, saves);
    }
  EXPECT_EQ(0, wrong) << "seed " << seed << " " << kernel->info().name;
}

TEST(Epilogue, behind_products) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 70; ++seed) check_matmul(seed);
  });
}

// Vectors run along the columns of a single channel, of which there may be more or fewer than lanes.
TEST(Epilogue, of_a_single_channel) {
  for_each_instruction_set([] {
    for (const std::int64_t columns : {1, 5, 16, 90})
      for (const ElementType type : {ElementType::f32, ElementType::bf16}) {
        Convolution c = dense_layer(columns, 40, 1);
        c.y.type = type;
        c.epilogue = Epilogue().bias().scale_channels().add(type).activate(Activation::sigmoid);
        const KernelPointer kernel = require_kernel(convolution_forward().prepare(c));
        GuardedBuffer x(ElementType::f32, columns * 40), w(ElementType::f32, 40),
            packed(ElementType::f32, 40);
        GuardedBuffer y(type, columns);
        x.fill_random(1), w.fill_random(2, -0.3, 0.3);
        run_kernel(*require_kernel(prepare_pack(weight_transfer(c, kernel->info().weights))), {w.data()},
                   {packed.data()});
        Operands operands(c.epilogue, columns, 1, 3);
        std::vector<const void*> inputs{x.data(), packed.data()};
        std::vector<void*> outputs{y.data()};
        operands.append(inputs, outputs);
        run_kernel(*kernel, inputs, outputs);
        const std::vector<Sum> sums = reference_forward(c, x, w);
        for (std::int64_t i = 0; i < columns; ++i) {
          std::vector<double> saves;
          const double exact = operands.apply(sums[static_cast<std::size_t>(i)].value, i, 0, saves);
          const double rounding = type == ElementType::bf16 ? 0x1p-8 : 0;
          EXPECT_NEAR(exact, y.get(i), 2e-5 + (rounding + 1e-5) * std::abs(exact)) << columns << ", " << i;
        }
      }
  });
}

TEST(Epilogue, refuses_what_it_cannot_do) {
  Convolution c;
  c.x = dense_image(1, 1, 4, 32), c.y = dense_image(1, 1, 4, 32);
  const auto reason = [&] { return convolution_forward().prepare(c, "portable").error().reason; };
  c.epilogue = Epilogue().add(ElementType::i32);
  EXPECT_EQ("the epilogue cannot read i32", reason());
  c.epilogue = Epilogue();
  c.epilogue.steps.push_back({.op = EpilogueOp::activation_gradient, .activation = Activation::silu});
  EXPECT_EQ("the gradient of silu needs the activation's input", reason());
  c.epilogue = Epilogue();
  for (int i = 0; i < 9; ++i) c.epilogue.scale(2);
  EXPECT_EQ("the epilogue has too many steps", reason());
}

TEST(Epilogue, describes_itself) {
  EXPECT_EQ("bias, add, leaky relu",
            to_string(Epilogue().bias().add().activate(Activation::leaky_relu, 0.01f)));
  EXPECT_EQ("scale 0.5, relu gradient, save",
            to_string(Epilogue().scale(0.5f).activation_gradient(Activation::relu).save()));
}

}  // namespace
}  // namespace superstep::kernels
