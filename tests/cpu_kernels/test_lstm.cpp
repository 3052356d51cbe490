#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/sequence/lstm.h"
#include "superstep/target/cpu/kernels/sequence/lstm_pack.h"
#include "tests/cpu_kernels/support/check.h"
#include "tests/cpu_kernels/support/lstm_reference.h"

namespace superstep::kernels {
namespace {

// The largest error over the largest value.
double error_of(const Numbers& actual, const Numbers& expected) {
  double error = 0, largest = 1e-30;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(actual[i] - expected[i]);
    error = std::isnan(difference) ? INFINITY : std::max(error, difference);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return actual.size() == expected.size() ? error / largest : INFINITY;
}

// Steps and samples of a sequence, either one outside, with a gap between rows now and then.
void place(RandomStream& random, const Lstm& l, std::int64_t length, std::int64_t& step,
           std::int64_t& sample) {
  const std::int64_t row = length + (random.below(3) == 0 ? static_cast<std::int64_t>(random.below(4)) : 0);
  const bool steps_outside = random.below(3) != 0;
  step = steps_outside ? l.batch * row : row;
  sample = steps_outside ? row : l.steps * row;
  if (random.below(6) == 0) (steps_outside ? step : sample) += 5;
}

void place_rows(Lstm& l, std::uint64_t seed) {
  RandomStream random(seed);
  place(random, l, l.inputs, l.x_step, l.x_sample);
  place(random, l, l.inputs, l.dx_step, l.dx_sample);
  place(random, l, l.hidden, l.y_step, l.y_sample);
  place(random, l, l.hidden, l.dy_step, l.dy_sample);
}

Lstm random_lstm(std::uint64_t seed) {
  RandomStream random(seed);
  static constexpr std::int64_t inputs[] = {1, 2, 7, 16, 17, 40}, units[] = {16, 16, 32, 48, 80};
  Lstm l;
  l.steps = 1 + static_cast<std::int64_t>(random.below(6));
  l.batch = random.below(8) == 0 ? 50 : 1 + static_cast<std::int64_t>(random.below(5));
  l.inputs = inputs[random.below(std::size(inputs))];
  l.hidden = l.batch == 50 ? 16 : units[random.below(std::size(units))];
  place(random, l, l.inputs, l.x_step, l.x_sample);
  place(random, l, l.inputs, l.dx_step, l.dx_sample);
  place(random, l, l.hidden, l.y_step, l.y_sample);
  place(random, l, l.hidden, l.dy_step, l.dy_sample);
  l.reverse = random.below(2) == 0;
  l.keep = true;
  l.zero_state = random.below(3) == 0;
  l.has_dy = random.below(5) != 0;
  l.has_dh = !l.has_dy || random.below(2) == 0;
  l.has_dc = random.below(2) == 0;
  l.wants_dx = random.below(4) != 0;
  return l;
}

std::string describe(const Lstm& l) {
  return fmt::format("{} steps of {} x ({} + {}), x {} {}, y {} {}, dy {} {}, dx {} {}{}{}{}", l.steps,
                     l.batch, l.inputs, l.hidden, l.x_step, l.x_sample, l.y_step, l.y_sample, l.dy_step,
                     l.dy_sample, l.dx_step, l.dx_sample, l.reverse ? ", reverse" : "",
                     l.zero_state ? ", zero state" : "", l.narrow ? ", narrow" : "");
}

GuardedBuffer random_buffer(std::int64_t size, std::uint64_t seed, double most) {
  GuardedBuffer buffer(ElementType::f32, size);
  buffer.fill_random(seed, -most, most);
  return buffer;
}

GuardedBuffer sequence(const Lstm& l, std::int64_t length, std::int64_t step, std::int64_t sample,
                       std::uint64_t seed) {
  GuardedBuffer buffer = strided_buffer(ElementType::f32, {l.steps, l.batch, length}, {step, sample, 1});
  buffer.fill_random(seed);
  return buffer;
}

Numbers numbers(const GuardedBuffer& buffer) {
  Numbers values;
  for (std::int64_t i = 0; i < buffer.size(); ++i) values.push_back(buffer.get(i));
  return values;
}

Numbers rows_of(const Lstm& l, const GuardedBuffer& buffer, std::int64_t length, std::int64_t step,
                std::int64_t sample) {
  Numbers values;
  for (std::int64_t t = 0; t < l.steps; ++t)
    for (std::int64_t n = 0; n < l.batch; ++n)
      for (std::int64_t i = 0; i < length; ++i) values.push_back(buffer.get(t * step + n * sample + i));
  return values;
}

GuardedBuffer packed(const Lstm& l, const GuardedBuffer& weights, std::int64_t columns,
                     LstmWeights::Use use) {
  const LstmWeights layout{.use = use, .hidden = l.hidden, .columns = columns, .narrow = l.narrow};
  GuardedBuffer result(ElementType::u8, static_cast<std::int64_t>(packed_bytes(layout)));
  run_kernel(*require_kernel(prepare_lstm_pack(layout)), {weights.data()}, {result.data()});
  return result;
}

// One problem on its way: what goes in, and what the kernels made of it.
struct Sequence {
  Sequence(const Lstm& lstm, std::uint64_t seed)
      : l(lstm),
        x(sequence(l, l.inputs, l.x_step, l.x_sample, seed)),
        w(random_buffer(4 * l.hidden * l.inputs, seed + 1, 0.4)),
        r(random_buffer(4 * l.hidden * l.hidden, seed + 2, 0.2)),
        bias(random_buffer(8 * l.hidden, seed + 3, 0.5)),
        h0(random_buffer(l.batch * l.hidden, seed + 4, l.zero_state ? 0 : 1)),
        c0(random_buffer(l.batch * l.hidden, seed + 5, l.zero_state ? 0 : 1)),
        y(sequence(l, l.hidden, l.y_step, l.y_sample, seed + 6)),
        h(random_buffer(h0.size(), seed + 7, 1)),
        c(random_buffer(h0.size(), seed + 8, 1)),
        gates(random_buffer(l.steps * l.batch * 4 * l.hidden, seed + 9, 1)),
        cells(random_buffer(l.steps * l.batch * l.hidden, seed + 10, 1)),
        dy(sequence(l, l.hidden, l.dy_step, l.dy_sample, seed + 11)),
        dh(random_buffer(h0.size(), seed + 12, 1)),
        dc(random_buffer(h0.size(), seed + 13, 1)) {}

  LstmInputs inputs() const {
    return {rows_of(l, x, l.inputs, l.x_step, l.x_sample),
            numbers(w),
            numbers(r),
            numbers(bias),
            numbers(h0),
            numbers(c0)};
  }
  Numbers result() const { return rows_of(l, y, l.hidden, l.y_step, l.y_sample); }

  void forward() { forward(run_kernel); }

  template <class Run>
  void forward(const Run& run) {
    const GuardedBuffer w_packed = packed(l, w, l.inputs, LstmWeights::Use::forward);
    const GuardedBuffer r_packed = packed(l, r, l.hidden, LstmWeights::Use::forward);
    std::vector<void*> outputs{y.data(), h.data(), c.data()};
    if (l.keep) outputs.insert(outputs.end(), {gates.data(), cells.data()});
    run(*require_kernel(prepare_lstm(l)),
        std::vector<const void*>{x.data(), w_packed.data(), r_packed.data(), bias.data(), h0.data(),
                                 c0.data()},
        outputs);
  }

  Lstm l;
  GuardedBuffer x, w, r, bias, h0, c0, y, h, c, gates, cells, dy, dh, dc;
};

double tolerance(const Lstm& l) { return l.narrow ? 3e-2 : 1e-5; }

void check_forward(const Lstm& l, std::uint64_t seed) {
  Sequence run(l, seed);
  const LstmOutputs expected = reference_lstm(l, run.inputs());
  run.forward();
  EXPECT_LE(error_of(run.result(), expected.y), tolerance(l)) << describe(l);
  EXPECT_LE(error_of(numbers(run.h), expected.last_h), tolerance(l)) << describe(l);
  EXPECT_LE(error_of(numbers(run.c), expected.last_c), tolerance(l)) << describe(l);
  const Numbers kept = run.result();
  run.l.keep = false;
  run.y.fill(0);
  run.forward();
  EXPECT_EQ(kept, run.result()) << "not keeping what the gradient needs: " << describe(l);
}

// Whether there is a kernel for it. Weights' gradients are added to what is there.
template <class Run>
bool check_gradient(const Lstm& l, std::uint64_t seed, const Run& run_it) {
  const Prepared kernel = prepare_lstm_gradient(l);
  if (!kernel) {
    EXPECT_EQ("rows of a sequence are not equally spaced", kernel.error().reason);
    return false;
  }
  Sequence run(l, seed);
  const LstmInputs in = run.inputs();
  const LstmGradients expected = reference_lstm_gradient(
      l, in, reference_lstm(l, in),
      {l.has_dy ? rows_of(l, run.dy, l.hidden, l.dy_step, l.dy_sample) : Numbers{},
       l.has_dh ? numbers(run.dh) : Numbers{}, l.has_dc ? numbers(run.dc) : Numbers{}});
  run.forward();
  const GuardedBuffer w = packed(l, run.w, l.inputs, LstmWeights::Use::gradient_w);
  const GuardedBuffer r = packed(l, run.r, l.hidden, LstmWeights::Use::gradient_r);
  GuardedBuffer dw = random_buffer(run.w.size(), seed, 1), dr = random_buffer(run.r.size(), seed, 1),
                dbias = random_buffer(run.bias.size(), seed, 1), dh0 = random_buffer(run.h0.size(), seed, 1),
                dc0 = random_buffer(run.c0.size(), seed, 1),
                dx = sequence(l, l.inputs, l.dx_step, l.dx_sample, seed);
  const Numbers start[] = {numbers(dw), numbers(dr), numbers(dbias)};
  std::vector<const void*> inputs{run.x.data(),  w.data(),     r.data(),         run.h0.data(),
                                  run.c0.data(), run.y.data(), run.gates.data(), run.cells.data()};
  if (l.has_dy) inputs.push_back(run.dy.data());
  if (l.has_dh) inputs.push_back(run.dh.data());
  if (l.has_dc) inputs.push_back(run.dc.data());
  std::vector<void*> outputs{dw.data(), dr.data(), dbias.data(), dh0.data(), dc0.data()};
  if (l.wants_dx) outputs.push_back(dx.data());
  run_it(**kernel, inputs, outputs);
  const auto check = [&](const char* name, const Numbers& actual, Numbers wanted, const Numbers& added) {
    for (std::size_t i = 0; i < added.size(); ++i) wanted[i] += added[i];
    EXPECT_LE(error_of(actual, wanted), tolerance(l)) << name << ": " << describe(l);
  };
  check("dw", numbers(dw), expected.dw, start[0]);
  check("dr", numbers(dr), expected.dr, start[1]);
  check("dbias", numbers(dbias), expected.dbias, start[2]);
  check("dh0", numbers(dh0), expected.dh0, {});
  check("dc0", numbers(dc0), expected.dc0, {});
  if (l.wants_dx) check("dx", rows_of(l, dx, l.inputs, l.dx_step, l.dx_sample), expected.dx, {});
  return true;
}

template <class Body>
void for_each_width(const Body& body) {
  for_each_instruction_set([&] {
    body(false);
    if (multiplies_pairs()) body(true);
  });
}

TEST(Lstm, agrees_with_its_formulas_whatever_the_shape) {
  for_each_width([](bool narrow) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      Lstm l = random_lstm(seed);
      l.narrow = narrow;
      check_forward(l, seed);
    }
  });
}

// By threads, and by one thread that takes the members' places one after the other, the last one first.
void run_shared(const Kernel& kernel, std::vector<const void*> inputs, std::vector<void*> outputs,
                int members, bool threads) {
  GuardedBuffer scratch(ElementType::u8,
                        static_cast<std::int64_t>((kernel.info().scratch_bytes + 63) / 64 * 64));
  scratch.fill_bits();
  const Arguments arguments{inputs, outputs, scratch.data()};
  std::vector<GuardedBuffer> own;
  for (int member = 1; member < members; ++member) {
    own.emplace_back(ElementType::u8, scratch.size());
    own.back().fill_bits();
  }
  const auto run = [&](int member) {
    kernel.run_shared(arguments, member,
                      member == 0 ? scratch.data() : own[static_cast<std::size_t>(member - 1)].data());
  };
  kernel.begin_shared(arguments, members);
  if (!threads)
    for (int member = members; member-- > 0;) run(member);
  std::vector<std::jthread> others;
  for (int member = 1; threads && member < members; ++member) others.emplace_back(run, member);
  if (threads) run(0);
}

TEST(Lstm, threads_that_share_a_run_make_the_same_bits) {
  for_each_width([](bool narrow) {
    for (std::uint64_t seed = 100; seed < 130; ++seed) {
      Lstm l = random_lstm(seed);
      l.narrow = narrow;
      l.keep = seed % 2 == 0;
      if (seed % 3 == 0) l.steps = 70;
      if (seed % 3 != 1) l.batch = 1;
      place_rows(l, seed);
      Sequence run(l, seed);
      run.forward();
      const Numbers y = run.result(), h = numbers(run.h), c = numbers(run.c);
      const int members = 2 + static_cast<int>(seed % 2);
      for (const bool threads : {false, true}) {
        for (GuardedBuffer* buffer : {&run.y, &run.h, &run.c}) buffer->fill(0);
        run.forward([&](const Kernel& kernel, auto inputs, auto outputs) {
          run_shared(kernel, inputs, outputs, members, threads);
        });
        EXPECT_EQ(y, run.result()) << describe(l);
        EXPECT_EQ(h, numbers(run.h)) << describe(l);
        EXPECT_EQ(c, numbers(run.c)) << describe(l);
      }
    }
  });
}

template <class Run>
void check_gradients(const Run& run) {
  for_each_width([&](bool narrow) {
    int ran = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      Lstm l = random_lstm(seed);
      l.narrow = narrow;
      ran += check_gradient(l, seed, run);
    }
    EXPECT_GT(ran, 15);
  });
}

TEST(Lstm, the_gradient_agrees_with_its_formulas_whatever_the_shape) { check_gradients(run_kernel); }

// Exactly what one thread makes: both go on from the same state of the gates.
TEST(Lstm, threads_that_share_a_gradient_make_what_one_thread_makes) {
  int shared = 0;
  check_gradients(
      [&](const Kernel& kernel, const std::vector<const void*>& inputs, const std::vector<void*>& outputs) {
        run_shared(kernel, inputs, outputs, 2 + shared % 2, shared % 3 != 0);
        ++shared;
      });
}

// The reference's own check: its gradient against its slope.
TEST(Lstm, the_gradient_of_the_reference_is_its_slope) {
  Lstm l = random_lstm(2);
  l.has_dy = l.has_dh = l.has_dc = true;
  const Sequence run(l, 2);
  LstmInputs in = run.inputs();
  const LstmCotangents given{rows_of(l, run.dy, l.hidden, l.dy_step, l.dy_sample), numbers(run.dh),
                             numbers(run.dc)};
  const auto value = [&] {
    const LstmOutputs out = reference_lstm(l, in);
    double sum = 0;
    for (std::size_t i = 0; i < out.y.size(); ++i) sum += out.y[i] * given.dy[i];
    for (std::size_t i = 0; i < out.last_h.size(); ++i)
      sum += out.last_h[i] * given.dh[i] + out.last_c[i] * given.dc[i];
    return sum;
  };
  const LstmGradients d = reference_lstm_gradient(l, in, reference_lstm(l, in), given);
  const std::pair<Numbers*, const Numbers*> pairs[] = {{&in.x, &d.dx},   {&in.w, &d.dw},
                                                       {&in.r, &d.dr},   {&in.bias, &d.dbias},
                                                       {&in.h0, &d.dh0}, {&in.c0, &d.dc0}};
  for (const auto& [numbers, gradient] : pairs)
    for (const std::size_t i : {std::size_t{0}, numbers->size() / 2, numbers->size() - 1}) {
      const double before = (*numbers)[i];
      (*numbers)[i] = before + 1e-4;
      const double above = value();
      (*numbers)[i] = before - 1e-4;
      const double below = value();
      (*numbers)[i] = before;
      EXPECT_NEAR((above - below) / 2e-4, (*gradient)[i], 1e-6 * (1 + std::abs((*gradient)[i])));
    }
}

TEST(Lstm, the_test_would_notice_exchanged_gates) {
  const Lstm l = random_lstm(3);
  Sequence run(l, 3);
  LstmInputs in = run.inputs();
  std::swap_ranges(in.bias.begin(), in.bias.begin() + l.hidden, in.bias.begin() + l.hidden);
  run.forward();
  EXPECT_GT(error_of(run.result(), reference_lstm(l, in).y), 1e-2);
}

TEST(Lstm, threads_share_steps_that_are_long_enough) {
  const Lstm layer{.steps = 50, .inputs = 256, .hidden = 256};
  EXPECT_EQ(16, (*prepare_lstm(layer))->info().members);
  const Lstm small{.steps = 50, .inputs = 32, .hidden = 128};
  EXPECT_EQ(1, (*prepare_lstm(small))->info().members);
}

TEST(Lstm, refuses_what_it_has_no_panels_for) {
  EXPECT_EQ("24 units are no multiple of 16", fault_of(Lstm{.hidden = 24}));
  EXPECT_EQ("an extent is not positive", prepare_lstm_gradient({.steps = 0}).error().reason);
}

}  // namespace
}  // namespace superstep::kernels
