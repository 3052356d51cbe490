// Operators on tensors without elements: of random cases one extent, wherever it occurs, becomes zero. What
// the shape rule takes, the cpu target computes like the reference, compiled for its widest instruction set
// and for none.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "superstep/op/core/definition.h"
#include "superstep/target/cpu/kernels/core/instruction_set.h"
#include "tests/matrix/built.h"
#include "tests/matrix/difference.h"
#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

// Nothing when no input has the extent.
std::optional<Case> without(const Case& item, std::int64_t extent) {
  Case emptied = item;
  bool any = false;
  for (Tensor& input : emptied.inputs) {
    if (!is_floating(input.type())) continue;
    std::vector<std::int64_t> extents = input.shape().extents();
    for (std::int64_t& one : extents) {
      if (one != extent) continue;
      one = 0;
      any = true;
    }
    input = Tensor(input.type(), Shape(extents));
  }
  return any ? std::optional(emptied) : std::nullopt;
}

// Whether the case means anything: the reference says so.
bool compare(const Case& item) {
  const auto built = build(item, ElementType::f32);
  if (!built) return false;
  TargetRun expected;
  try {
    expected = run("reference", *built);
  } catch (const Error&) {
    return false;
  }
  for (const auto set : {kernels::InstructionSet::scalar, kernels::available_instruction_sets().back()}) {
    kernels::set_instruction_set(set);
    const TargetRun found = run("cpu", *built, 2);
    for (std::size_t i = 0; i < expected.outputs.size(); ++i)
      EXPECT_EQ(difference(found.outputs[i], expected.outputs[i], tolerance(ElementType::f32)), "")
          << "output " << i << ", " << kernels::name_of(set);
  }
  return true;
}

std::set<std::int64_t> extents_of(const Case& item) {
  std::set<std::int64_t> extents;
  for (const Tensor& input : item.inputs)
    if (is_floating(input.type())) extents.insert(input.shape().begin(), input.shape().end());
  return extents;
}

TEST(ZeroSizes, AreAsTheReference) {
  std::set<std::string> compared;
  for (const op::Definition& definition : op::all()) {
    const Generator* generator = generator_of(definition.name);
    if (!generator) continue;
    const std::string name(definition.name);
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(cases_each(2)); ++seed) {
      Draw draw(seed + 900 + own_seed(name));
      const Case item = generator->draw(draw, name.c_str());
      for (const std::int64_t extent : extents_of(item)) {
        const std::optional<Case> emptied = without(item, extent);
        if (!emptied) continue;
        SCOPED_TRACE(name + " of seed " + std::to_string(seed) + ", " + item.name + ", without " +
                     std::to_string(extent));
        try {
          if (compare(*emptied)) compared.insert(name);
        } catch (const Error& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
  }
  std::cout << compared.size() << " operators took a tensor without elements\n";
  EXPECT_GT(compared.size(), 100u);
}

}  // namespace
}  // namespace superstep::matrix
