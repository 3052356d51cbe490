#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/target/cpu/kernels/fourier/fourier.h"
#include "tests/cpu_kernels/support/check.h"

namespace superstep::kernels {
namespace {

using Number = std::complex<double>;
using Extents = std::vector<std::int64_t>;

std::int64_t draw_below(RandomStream& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
}

// Strides of a tensor whose axes lie in a random order, with gaps now and then.
Extents random_strides(RandomStream& random, const Extents& extents, std::int64_t unit) {
  std::vector<std::size_t> order(extents.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (random.below(2) == 0)
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  Extents strides(extents.size());
  std::int64_t next = unit;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = next;
    next *= extents[order[i]];
    if (random.below(6) == 0) next += unit * draw_below(random, 4);
  }
  return strides;
}

std::int64_t unit_of(ComplexForm form) { return form == ComplexForm::interleaved ? 2 : 1; }

std::int64_t length_of(const Fourier& f) {
  return f.length != 0 ? f.length : f.extents[static_cast<std::size_t>(f.axes[0])];
}

Extents results_of(const Fourier& f) {
  Extents extents = f.extents;
  if (f.length != 0 || f.results != 0)
    extents[static_cast<std::size_t>(f.axes[0])] = f.results != 0 ? f.results : f.length;
  return extents;
}

std::int64_t elements_of(const Extents& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

Fourier random_fourier(std::uint64_t seed) {
  RandomStream random(seed);
  static constexpr std::int64_t lengths[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 12,  13, 15,
                                             16, 17, 22, 26, 30, 31, 32, 49, 64, 97, 100, 128};
  Fourier f;
  const std::int64_t rank = 1 + draw_below(random, 4);
  for (std::int64_t i = 0; i < rank; ++i)
    f.extents.push_back(i < 2 ? lengths[random.below(std::size(lengths))] : 1 + draw_below(random, 20));
  while (elements_of(f.extents) > 40000) f.extents.pop_back();
  for (std::size_t axis = 0; axis < f.extents.size(); ++axis)
    if (random.below(2) == 0) f.axes.push_back(static_cast<int>(axis));
  if (f.axes.empty()) f.axes = {static_cast<int>(random.below(f.extents.size()))};
  f.inverse = random.below(2) == 0;
  f.scale = random.below(2) == 0 ? 1.0f : 0.375f;
  f.x_form = static_cast<ComplexForm>(random.below(3));
  f.y_form = random.below(2) == 0 ? ComplexForm::separate : ComplexForm::interleaved;
  if (f.axes.size() == 1 && random.below(2) == 0) {
    const std::int64_t extent = f.extents[static_cast<std::size_t>(f.axes[0])];
    f.length = std::max<std::int64_t>(1, extent + draw_below(random, 7) - 3);
    if (random.below(2) == 0) f.results = f.length / 2 + 1;
    if (random.below(3) == 0) f.half = true, f.results = 0, f.y_form = ComplexForm::real;
  }
  f.x_strides = random_strides(random, f.extents, unit_of(f.x_form));
  f.y_strides = random_strides(random, results_of(f), unit_of(f.y_form));
  return f;
}

std::string describe(const Fourier& f) {
  return fmt::format("extents {}, x {} ({}), y {} ({}), axes {}, inverse {}, length {}, results {}, half {}",
                     fmt::join(f.extents, " "), fmt::join(f.x_strides, " "), static_cast<int>(f.x_form),
                     fmt::join(f.y_strides, " "), static_cast<int>(f.y_form), fmt::join(f.axes, " "),
                     f.inverse, f.length, f.results, f.half);
}

// A tensor of complex numbers in its memory.
struct Memory {
  Memory(ComplexForm form, const Extents& extents, const Extents& strides)
      : form_(form), extents_(extents), strides_(strides) {
    Extents all = extents, steps = strides;
    if (form == ComplexForm::interleaved) all.push_back(2), steps.push_back(1);
    const int parts = form == ComplexForm::separate ? 2 : 1;
    for (int part = 0; part < parts; ++part) buffers.push_back(strided_buffer(ElementType::f32, all, steps));
  }

  std::int64_t address(std::int64_t number) const {
    std::int64_t offset = 0;
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      offset += number % extents_[axis] * strides_[axis];
      number /= extents_[axis];
    }
    return offset;
  }
  Number get(std::int64_t number) const {
    const std::int64_t at = address(number);
    if (form_ == ComplexForm::real) return buffers[0].get(at);
    return form_ == ComplexForm::separate ? Number(buffers[0].get(at), buffers[1].get(at))
                                          : Number(buffers[0].get(at), buffers[0].get(at + 1));
  }
  std::vector<Number> all() const {
    std::vector<Number> numbers;
    std::int64_t count = 1;
    for (std::int64_t extent : extents_) count *= extent;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(get(i));
    return numbers;
  }
  std::vector<const void*> inputs() const {
    std::vector<const void*> slots;
    for (const GuardedBuffer& buffer : buffers) slots.push_back(buffer.data());
    return slots;
  }
  std::vector<void*> outputs() {
    std::vector<void*> slots;
    for (GuardedBuffer& buffer : buffers) slots.push_back(buffer.data());
    return slots;
  }

  std::vector<GuardedBuffer> buffers;

 private:
  ComplexForm form_;
  Extents extents_, strides_;
};

// One axis, term by term.
std::vector<Number> along(const std::vector<Number>& x, Extents& extents, const Fourier& f, int axis) {
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t extent = extents[at], n = f.length != 0 ? f.length : extent,
                     results = f.results != 0 ? f.results : n;
  std::int64_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) (i < at ? outer : inner) *= i == at ? 1 : extents[i];
  std::vector<Number> y;
  const std::int64_t given = std::min(extent, f.half ? n / 2 + 1 : n);
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t k = 0; k < results; ++k)
      for (std::int64_t i = 0; i < inner; ++i) {
        Number sum = 0;
        for (std::int64_t t = 0; t < n; ++t) {
          const std::int64_t source = t < given ? t : n - t;
          if (t >= given && (!f.half || source >= given)) continue;
          const Number value = x[static_cast<std::size_t>((o * extent + source) * inner + i)];
          const double turn = 2 * std::numbers::pi * static_cast<double>(t * k % n) / static_cast<double>(n);
          sum += (t < given ? value : std::conj(value)) * std::polar(1.0, f.inverse ? turn : -turn);
        }
        y.push_back(f.y_form == ComplexForm::real ? sum.real() : sum);
      }
  extents[at] = results;
  return y;
}

std::vector<Number> expected_of(const Fourier& f, std::vector<Number> x) {
  Extents extents = f.extents;
  for (int axis : f.axes) x = along(x, extents, f, axis);
  for (Number& value : x) value *= static_cast<double>(f.scale);
  return x;
}

// Rounding of log2 n stages, of results as large as random terms make them. Bluestein's convolution has four
// times as many.
double allowed(const Fourier& f) {
  double points = 1;
  for (int axis : f.axes)
    points *= f.axes.size() == 1 ? static_cast<double>(length_of(f))
                                 : static_cast<double>(f.extents[static_cast<std::size_t>(axis)]);
  return 0x1p-24 * 8 * (3 + std::log2(points)) * std::sqrt(points) * static_cast<double>(f.scale);
}

int wrong_numbers(const Fourier& f, const std::vector<Number>& actual, const std::vector<Number>& expected) {
  int wrong = actual.size() != expected.size();
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i)
    wrong += !(std::abs(actual[i] - expected[i]) <= allowed(f));
  return wrong;
}

void fill(Memory& memory, std::uint64_t seed) {
  for (GuardedBuffer& buffer : memory.buffers) buffer.fill_random(++seed * 7);
}

TEST(Fourier, AgreesWithTheSumsTermByTerm) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      const Fourier f = random_fourier(seed);
      Memory x(f.x_form, f.extents, f.x_strides), y(f.y_form, results_of(f), f.y_strides);
      fill(x, seed);
      run_kernel(*require_kernel(prepare(f)), x.inputs(), y.outputs());
      EXPECT_EQ(0, wrong_numbers(f, y.all(), expected_of(f, x.all())))
          << "seed " << seed << ": " << describe(f);
    }
  });
}

TEST(Fourier, WorksInPlace) {
  for_each_instruction_set([] {
    for (std::uint64_t seed = 300; seed < 340; ++seed) {
      Fourier f = random_fourier(seed);
      f.length = f.results = 0, f.half = false;
      f.y_form = f.x_form = seed % 2 == 0 ? ComplexForm::separate : ComplexForm::interleaved;
      RandomStream random(seed);
      f.y_strides = f.x_strides = random_strides(random, f.extents, unit_of(f.x_form));
      Memory x(f.x_form, f.extents, f.x_strides);
      fill(x, seed);
      const std::vector<Number> expected = expected_of(f, x.all());
      run_kernel(*require_kernel(prepare(f)), x.inputs(), x.outputs());
      EXPECT_EQ(0, wrong_numbers(f, x.all(), expected)) << "seed " << seed << ": " << describe(f);
    }
  });
}

// Volumes as diffraction has them, and lengths of each kind on long lines.
TEST(Fourier, AgreesOnWholeVolumesAndLongLines) {
  for_each_instruction_set([] {
    for (const Extents& extents :
         {Extents{32, 16, 8}, Extents{3, 2187}, Extents{2, 1021}, Extents{1, 4096}}) {
      Fourier f{.extents = extents, .x_strides = {}, .y_strides = {}, .axes = {}};
      std::int64_t stride = 1;
      for (std::size_t i = extents.size(); i-- > 0; stride *= extents[i])
        f.x_strides.insert(f.x_strides.begin(), stride);
      f.y_strides = f.x_strides;
      for (std::size_t i = extents.size() == 3 ? 0 : 1; i < extents.size(); ++i)
        f.axes.push_back(static_cast<int>(i));
      Memory x(f.x_form, extents, f.x_strides), y(f.y_form, extents, f.y_strides);
      fill(x, 5);
      run_kernel(*require_kernel(prepare(f)), x.inputs(), y.outputs());
      EXPECT_EQ(0, wrong_numbers(f, y.all(), expected_of(f, x.all()))) << describe(f);
    }
  });
}

TEST(Fourier, TheTestWouldNoticeAWrongNumber) {
  const Fourier f{.extents = {16, 12}, .x_strides = {12, 1}, .y_strides = {12, 1}, .axes = {0, 1}};
  Memory x(f.x_form, f.extents, f.x_strides), y(f.y_form, f.extents, f.y_strides);
  fill(x, 1);
  run_kernel(*require_kernel(prepare(f)), x.inputs(), y.outputs());
  x.buffers[0].set(40, x.buffers[0].get(40) + 1e-3);
  EXPECT_LT(150, wrong_numbers(f, y.all(), expected_of(f, x.all())));
}

// A line's bits are its own, whatever lies beside it: threads may share lines as they like.
TEST(Fourier, ALineHasTheSameBitsInAnyCompany) {
  for (std::int64_t n : {60, 64, 37}) {
    Fourier f{.extents = {n, 21}, .x_strides = {21, 1}, .y_strides = {21, 1}, .axes = {0}};
    Memory x(f.x_form, f.extents, f.x_strides), y(f.y_form, f.extents, f.y_strides);
    fill(x, 9);
    run_kernel(*require_kernel(prepare(f)), x.inputs(), y.outputs());
    Fourier few = f;
    few.extents[1] = 5;
    Memory z(f.y_form, few.extents, {5, 1});
    few.y_strides = {5, 1};
    run_kernel(*require_kernel(prepare(few)), x.inputs(), z.outputs());
    int differ = 0;
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t line = 0; line < 5; ++line) differ += z.get(k * 5 + line) != y.get(k * 21 + line);
    EXPECT_EQ(0, differ) << n;
  }
}

TEST(Fourier, RefusesWhatMakesNoSense) {
  const auto reason = [](const Fourier& f) { return prepare(f).error().reason; };
  Fourier f{.extents = {4, 4}, .x_strides = {4, 1}, .y_strides = {4, 1}, .axes = {0, 1}};
  EXPECT_TRUE(prepare(f));
  f.length = 6;
  EXPECT_EQ("several axes are transformed as they are", reason(f));
  f.length = 0, f.axes = {0, 0};
  EXPECT_EQ("an axis is transformed twice", reason(f));
  f.axes = {2};
  EXPECT_EQ("there is no such axis", reason(f));
  f.axes = {};
  EXPECT_EQ("there is no axis to transform", reason(f));
  f.axes = {0}, f.extents = {0, 4};
  EXPECT_EQ("an extent is not positive", reason(f));
}

}  // namespace
}  // namespace superstep::kernels
