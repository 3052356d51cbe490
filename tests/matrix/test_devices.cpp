// Operator x element type x (value, both derivatives) on a device behind a PJRT plug-in, here this processor,
// beside the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "superstep/graph/verify.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/pjrt/stablehlo/lowering.h"
#include "superstep/transform/training/differentiate.h"
#include "tests/matrix/built.h"
#include "tests/matrix/difference.h"
#include "tests/pjrt/plugins.h"

namespace superstep::matrix {
namespace {

// Compiling takes a plug-in a tenth of a second a program: the usual run has a type of each class.
// SUPERSTEP_CASES=40 has all.
std::vector<ElementType> value_types() {
  if (cases_each(0) == 0)
    return {ElementType::f32, ElementType::bf16, ElementType::i64, ElementType::boolean};
  return {ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16,   ElementType::i64,
          ElementType::i32, ElementType::i8,  ElementType::u8,  ElementType::boolean};
}
std::vector<ElementType> slope_types(const Case& item) {
  if (cases_each(0) == 0) return {item.reduced ? ElementType::f32 : ElementType::f64};
  return {ElementType::f64, ElementType::f32};
}

bool is_refused(const Case& item) {
  return target::stablehlo::road_of(item.op) == target::stablehlo::Road::refused;
}

template <class Build>
void compare(const Case& item, ElementType element, const char* what, double factor, Build&& make) {
  SCOPED_TRACE(fmt::format("{} in {}", what, name_of(element)));
  if (!item.reduced && element != ElementType::f64) return;
  const auto built = make(item, element);
  if (!built) return;  // the operator refuses the type
  const TargetRun actual = run("pjrt-cpu", *built), expected = run("reference", *built);
  for (std::size_t i = 0; i < actual.outputs.size(); ++i)
    EXPECT_EQ(difference(actual.outputs[i], expected.outputs[i], factor * tolerance(item.op, element)), "")
        << "output " << i;
}

class OnDevice : public ::testing::TestWithParam<const Case*> {};

TEST_P(OnDevice, GivesTheReferencesValues) {
  NEEDS_CPU_PLUGIN();
  if (is_refused(*GetParam())) GTEST_SKIP() << target::stablehlo::refusal_of(GetParam()->op);
  for (ElementType element : value_types()) compare(*GetParam(), element, "value", 1, build);
}

TEST_P(OnDevice, GivesTheReferencesDerivatives) {
  NEEDS_CPU_PLUGIN();
  if (is_refused(*GetParam()) || GetParam()->smooth == op::test::Smooth::no) GTEST_SKIP() << "has none";
  for (ElementType element : slope_types(*GetParam())) {
    compare(*GetParam(), element, "gradient", 4, build_gradient);
    compare(*GetParam(), element, "tangent", 4, build_tangent);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, OnDevice, ::testing::ValuesIn(op::test::all_parameters()),
                         [](const auto& instance) {
                           return op::test::name_of_test(*instance.param, instance.index);
                         });

// A lowering, or what it is made of, or a reason; and few without one.
TEST(OnDevices, EveryOperatorHasARoad) {
  int refused = 0;
  for (const op::Definition& definition : op::all()) {
    if (target::stablehlo::road_of(definition.name) != target::stablehlo::Road::refused) continue;
    ++refused;
    EXPECT_FALSE(target::stablehlo::refusal_of(definition.name).empty())
        << definition.name << ": lower it, or say why not (target/pjrt/stablehlo/lowering.cpp)";
  }
  EXPECT_LE(refused, 10);
}

}  // namespace
}  // namespace superstep::matrix
