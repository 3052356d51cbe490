// Every operator on the cpu target with numbers that are none, are infinite, are zero with a sign or denormal
// among its inputs: what the definition makes of them, which follows NumPy, every target makes of them.
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "superstep/base/random.h"
#include "superstep/op/core/definition.h"
#include "tests/matrix/built.h"
#include "tests/matrix/difference.h"
#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double special[] = {
    std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, -0.0, 1e-41, 0.0};

// What an input that says where elements are means by a place that is no number is left open; and what a
// weight is to the zeros of the padding.
bool stays_finite(std::string_view op, std::size_t input) {
  static const std::set<std::pair<std::string_view, std::size_t>> inputs{
      {"GridSample", 1},    {"RoiAlign", 1},          {"MaxRoiPool", 1},          {"DeformConv", 2},
      {"OneHot", 0},        {"NonMaxSuppression", 0}, {"superstep.KeptBoxes", 0}, {"Conv", 1},
      {"ConvTranspose", 1}, {"Bernoulli", 0}};
  return inputs.contains({op, input});
}

// Where two ways of computing the same differ at such numbers, and neither is wrong: factors of zero that one
// of them leaves out (Fourier transforms, weights of resizing), the limit at minus infinity (x sigmoid(x),
// which is 0 times infinity otherwise), products that leave the type's range on the way.
bool is_left_out(std::string_view op) {
  static const std::set<std::string_view> left_out{
      "DFT", "STFT", "superstep.ResizeGradient", "Swish", "SwiGLU", "CumProd", "superstep.Lamb"};
  return left_out.contains(op);
}

// A tenth of the elements of the floating inputs, or most of them.
Case with_special(Case item, std::uint64_t seed) {
  RandomStream random(seed, 77);
  const double share = seed % 2 == 0 ? 0.1 : 0.7;
  for (std::size_t i = 0; i < item.inputs.size(); ++i) {
    Tensor& input = item.inputs[i];
    if (!is_floating(input.type()) || stays_finite(item.op, i) || input.element_count() == 0) continue;
    input = input.clone();
    for (std::int64_t k = 0; k < input.element_count(); ++k)
      if (random.uniform() < share) input.set(k, special[random.below(std::size(special))]);
  }
  return item;
}

void compare(const Case& item, std::uint64_t seed, ElementType element) {
  SCOPED_TRACE(item.op + " of seed " + std::to_string(seed) + " in " + name_of(element));
  const auto built = build(item, element);
  if (!built) return;  // the operator does not take the type
  try {
    const TargetRun expected = run("reference", *built);
    const TargetRun found = run("cpu", *built);
    ASSERT_EQ(found.outputs.size(), expected.outputs.size());
    for (std::size_t i = 0; i < expected.outputs.size(); ++i)
      EXPECT_EQ(difference(found.outputs[i], expected.outputs[i], tolerance(item.op, element)), "")
          << "output " << i;
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

void compare_all(const std::vector<Generator>& generators) {
  for (const Generator& generator : generators)
    for (const char* name : generator.operators)
      for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases_each(4)); ++seed) {
        Draw draw(seed + 900 + own_seed(name));
        const Case item = generator.draw(draw, name);
        if (has_floats(item) && !is_left_out(name))
          compare(with_special(item, seed), seed, seed % 4 == 3 ? ElementType::bf16 : ElementType::f32);
      }
}

TEST(SpecialValues, OfElementwiseOperators) { compare_all(elementwise_generators()); }
TEST(SpecialValues, OfProducts) { compare_all(product_generators()); }
TEST(SpecialValues, OfWindows) { compare_all(window_generators()); }
TEST(SpecialValues, OfLines) { compare_all(line_generators()); }
TEST(SpecialValues, OfIndexing) { compare_all(index_generators()); }
TEST(SpecialValues, OfSequences) { compare_all(sequence_generators()); }
TEST(SpecialValues, OfTheOthers) { compare_all(other_generators()); }

}  // namespace
}  // namespace superstep::matrix
