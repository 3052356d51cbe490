// A GRU over a sequence against its formulas in f64, on one thread and shared.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/sequence/gru.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

using Numbers = std::vector<double>;

Gru random_gru(std::uint64_t seed) {
  RandomStream random(seed);
  static constexpr std::int64_t inputs[] = {1, 2, 7, 16, 17, 40}, units[] = {16, 32, 48, 80};
  Gru g;
  g.steps = random.below(4) == 0 ? 70 : 1 + static_cast<std::int64_t>(random.below(6));
  g.batch = random.below(8) == 0 ? 50 : 1 + static_cast<std::int64_t>(random.below(5));
  g.inputs = inputs[random.below(std::size(inputs))];
  g.hidden = g.batch == 50 ? 16 : units[random.below(std::size(units))];
  g.x_row = g.inputs + static_cast<std::int64_t>(random.below(3));
  const bool steps_outside = random.below(2) == 0;
  g.y_step = steps_outside ? g.batch * g.hidden + 3 : g.hidden;
  g.y_sample = steps_outside ? g.hidden : g.steps * g.hidden + 3;
  g.reverse = random.below(2) == 0;
  g.zero_state = random.below(3) == 0;
  return g;
}

std::string describe(const Gru& g) {
  return fmt::format("{} steps of {} x ({} + {}), x {}, y {} {}{}{}", g.steps, g.batch, g.inputs, g.hidden,
                     g.x_row, g.y_step, g.y_sample, g.reverse ? ", reverse" : "",
                     g.zero_state ? ", zero state" : "");
}

GuardedBuffer random_buffer(std::int64_t size, std::uint64_t seed, double most) {
  GuardedBuffer buffer(ElementType::f32, size);
  buffer.fill_random(seed, -most, most);
  return buffer;
}

GuardedBuffer packed(const Gru& g, const GuardedBuffer& weights, std::int64_t columns) {
  GuardedBuffer result(ElementType::f32, 3 * g.hidden * columns);
  run_kernel(*require_kernel(prepare_gru_pack(1, g.hidden, columns)), {weights.data()}, {result.data()});
  return result;
}

struct Problem {
  Problem(const Gru& gru, std::uint64_t seed)
      : g(gru),
        x(strided_buffer(ElementType::f32, {g.steps * g.batch, g.inputs}, {g.x_row, 1})),
        w(random_buffer(3 * g.hidden * g.inputs, seed + 1, 0.4)),
        r(random_buffer(3 * g.hidden * g.hidden, seed + 2, 0.2)),
        bias(random_buffer(6 * g.hidden, seed + 3, 0.5)),
        h0(random_buffer(g.batch * g.hidden, seed + 4, g.zero_state ? 0 : 1)),
        y(strided_buffer(ElementType::f32, {g.steps, g.batch, g.hidden}, {g.y_step, g.y_sample, 1})),
        last(random_buffer(g.batch * g.hidden, seed + 5, 1)) {
    x.fill_random(seed);
  }

  // Row after row of W or R, of a gate and a unit, with a vector.
  double product(const GuardedBuffer& weights, std::int64_t gate, std::int64_t unit,
                 const Numbers& with) const {
    const auto columns = static_cast<std::int64_t>(with.size());
    double sum = 0;
    for (std::int64_t k = 0; k < columns; ++k)
      sum += weights.get((gate * g.hidden + unit) * columns + k) * with[static_cast<std::size_t>(k)];
    return sum;
  }

  Numbers next(const Numbers& row, const Numbers& state) const {
    Numbers result;
    const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
    for (std::int64_t u = 0; u < g.hidden; ++u) {
      const auto of_x = [&](std::int64_t i) { return product(w, i, u, row) + bias.get(i * g.hidden + u); };
      const auto of_h = [&](std::int64_t i) {
        return product(r, i, u, state) + bias.get((3 + i) * g.hidden + u);
      };
      const double z = logistic(of_x(0) + of_h(0)), reset = logistic(of_x(1) + of_h(1));
      result.push_back((1 - z) * std::tanh(of_x(2) + reset * of_h(2)) +
                       z * state[static_cast<std::size_t>(u)]);
    }
    return result;
  }

  void check() const {
    double error = 0;
    for (std::int64_t n = 0; n < g.batch; ++n) {
      Numbers state;
      for (std::int64_t u = 0; u < g.hidden; ++u) state.push_back(h0.get(n * g.hidden + u));
      for (std::int64_t order = 0; order < g.steps; ++order) {
        const std::int64_t t = g.reverse ? g.steps - 1 - order : order;
        Numbers row;
        for (std::int64_t k = 0; k < g.inputs; ++k) row.push_back(x.get((t * g.batch + n) * g.x_row + k));
        state = next(row, state);
        for (std::int64_t u = 0; u < g.hidden; ++u)
          error = std::fmax(
              error, std::abs(y.get(t * g.y_step + n * g.y_sample + u) - state[static_cast<std::size_t>(u)]));
      }
      for (std::int64_t u = 0; u < g.hidden; ++u)
        error = std::fmax(error, std::abs(last.get(n * g.hidden + u) - state[static_cast<std::size_t>(u)]));
    }
    EXPECT_LE(error, 1e-5) << describe(g);
  }

  template <class Run>
  void forward(const Run& run) {
    const GuardedBuffer w_packed = packed(g, w, g.inputs), r_packed = packed(g, r, g.hidden);
    run(*require_kernel(prepare_gru(g)),
        std::vector<const void*>{x.data(), w_packed.data(), r_packed.data(), bias.data(), h0.data()},
        std::vector<void*>{y.data(), last.data()});
  }

  Gru g;
  GuardedBuffer x, w, r, bias, h0, y, last;
};

TEST(Gru, agrees_with_its_formulas_whatever_the_shape) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      Problem problem(random_gru(seed), seed);
      problem.forward(run_kernel);
      problem.check();
    }
  });
}

// Each member waits for the others after every step.
void run_shared(const Kernel& kernel, const std::vector<const void*>& inputs,
                const std::vector<void*>& outputs) {
  GuardedBuffer scratch(ElementType::u8,
                        static_cast<std::int64_t>((kernel.info().scratch_bytes + 63) / 64 * 64));
  scratch.fill_bits();
  const Arguments arguments{inputs, outputs, scratch.data()};
  constexpr int members = 3;
  kernel.begin_shared(arguments, members);
  std::vector<std::jthread> others;
  for (int member = 1; member < members; ++member)
    others.emplace_back([&, member] { kernel.run_shared(arguments, member, nullptr); });
  kernel.run_shared(arguments, 0, nullptr);
}

TEST(Gru, threads_that_share_a_run_agree_with_its_formulas) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) {
    Problem problem(random_gru(seed), seed);
    problem.forward(run_shared);
    problem.check();
  }
}

TEST(Gru, refuses_units_that_fill_no_panel) {
  const Prepared kernel = prepare_gru({.steps = 2, .batch = 1, .inputs = 3, .hidden = 20, .x_row = 3});
  ASSERT_FALSE(kernel);
  EXPECT_EQ("20 units are no multiple of 16", kernel.error().reason);
}

}  // namespace
}  // namespace superstep::kernels
