// Every operator on the cpu target over random shapes, axes, strides and values, compiled for each
// instruction set that the machine has: against the reference evaluation, and the sets against each other,
// forwards and backwards, in f32 and bf16. Two sets may differ by what each may differ from the reference:
// they sum in another order, and scalar code has no fused multiply-add.
#include <gtest/gtest.h>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "tests/matrix/built.h"
#include "tests/matrix/difference.h"
#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

using kernels::InstructionSet;

class WidestAgain {
 public:
  ~WidestAgain() { kernels::set_instruction_set(kernels::available_instruction_sets().back()); }
};

void expect_close(const TargetRun& actual, const TargetRun& expected, double tolerance, const char* than) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (std::size_t i = 0; i < actual.outputs.size(); ++i)
    EXPECT_EQ(difference(actual.outputs[i], expected.outputs[i], tolerance), "")
        << "output " << i << ", other than " << than;
}

void compare_sets(const Built& built, double tolerance, int threads) {
  const WidestAgain widest_again;
  const TargetRun reference = run("reference", built);
  std::optional<TargetRun> narrowest;
  for (const InstructionSet set : kernels::available_instruction_sets()) {
    SCOPED_TRACE(kernels::name_of(set));
    kernels::set_instruction_set(set);
    TargetRun found = run("cpu", built, threads);
    expect_close(found, reference, tolerance, "the reference");
    if (narrowest)
      expect_close(found, *narrowest, tolerance, "the narrowest set");
    else
      narrowest = std::move(found);
  }
}

void check(const Case& item, std::uint64_t seed, ElementType element, bool backward) {
  SCOPED_TRACE(item.op + " of seed " + std::to_string(seed) + ", " + item.name + ", in " + name_of(element) +
               (backward ? ", backwards" : ""));
  try {
    const auto built = backward ? build_gradient(item, element) : build(item, element);
    if (!built) return;  // the operator does not take the type
    compare_sets(*built, (backward ? 4 : 1) * tolerance(item.op, element), 1 + static_cast<int>(seed % 2));
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

void check_all(const std::vector<Generator>& generators) {
  for (const Generator& generator : generators)
    for (const char* name : generator.operators)
      for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases_each(3)); ++seed) {
        Draw draw(seed + 500 + own_seed(name));
        const Case item = generator.draw(draw, name);
        const bool floats = has_floats(item);
        const ElementType element = !floats         ? item.inputs[0].type()
                                    : seed % 3 == 0 ? ElementType::bf16
                                                    : ElementType::f32;
        check(item, seed, element, false);
        if (floats && item.smooth != Smooth::no) check(item, seed, element, true);
      }
}

TEST(InstructionSets, AgreeOnElementwiseOperators) { check_all(elementwise_generators()); }
TEST(InstructionSets, AgreeOnProducts) { check_all(product_generators()); }
TEST(InstructionSets, AgreeOnWindows) { check_all(window_generators()); }
TEST(InstructionSets, AgreeOnLines) { check_all(line_generators()); }
TEST(InstructionSets, AgreeOnIndexing) { check_all(index_generators()); }
TEST(InstructionSets, AgreeOnSequences) { check_all(sequence_generators()); }
TEST(InstructionSets, AgreeOnTheOthers) { check_all(other_generators()); }

}  // namespace
}  // namespace superstep::matrix
