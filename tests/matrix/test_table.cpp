// The printed table of operators says what the cases show.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "superstep/base/file.h"
#include "superstep/op/core/definition.h"
#include "superstep/op/core/element_types.h"
#include "tests/matrix/measure.h"

namespace superstep::matrix {
namespace {

std::string list_of(const std::set<ElementType>& types) {
  std::string text;
  for (ElementType type : types) text += std::string(text.empty() ? "" : ", ") + superstep::name_of(type);
  return text;
}

// BitCast: its cases name the type of the result, so that only types of that width can be shown. The others:
// their floating inputs are scales, their data bytes.
const std::set<std::string> bound_by_their_cases = {"BitCast", "QLinearConv", "QLinearMatMul"};

// What has a kernel that the cases, small and general as they are, do not meet; and why.
const std::map<std::string, std::string> kernels_beyond_the_cases = {
    {"superstep.Adam", "runs in the update of a training step alone"},
    {"superstep.Adamax", "runs in the update of a training step alone"},
    {"superstep.RMSProp", "runs in the update of a training step alone"},
    {"superstep.Sgd", "runs in the update of a training step alone"},
    {"Clip", "its bounds are constants"},
    {"Split", "parts are read where they lie, and copied where somebody wants them as an image"},
    {"DequantizeLinear", "bytes with one scale"},
    {"ConvInteger", "weights are parameters, sums over a multiple of four"},
    {"GRU", "hidden states of a multiple of 16"},
    {"LSTM", "hidden states of a multiple of 16"},
    {"superstep.LSTMGradient", "hidden states of a multiple of 16"},
};

}  // namespace

TEST(Table, EveryOperatorStatesItsElementTypes) {
  for (const op::Definition& definition : op::all())
    EXPECT_NE(op::element_types(definition.traits.elements), nullptr)
        << definition.name << ": state traits.elements in its definition";
  EXPECT_EQ(op::element_types(op::Elements::unstated), nullptr);
}

TEST(Table, ElementTypesAreThoseTheCasesShow) {
  for (const auto& [name, shown] : accepted_types()) {
    const op::TypeClass* row = op::element_types(op::traits_of(name).elements);
    if (!row || bound_by_their_cases.contains(name)) continue;
    EXPECT_EQ(std::set(row->types.begin(), row->types.end()), shown)
        << name << " takes " << list_of(shown) << "; correct traits.elements in its definition";
  }
}

TEST(Table, ExecutionIsThatOfThePlans) {
  for (const auto& [name, shown] : cpu_execution()) {
    const target::Execution said = target::cpu_execution_of(name);
    if (const auto beyond = kernels_beyond_the_cases.find(name); beyond != kernels_beyond_the_cases.end()) {
      EXPECT_EQ(said, target::Execution::kernel) << name;
      EXPECT_NE(shown, target::Execution::kernel)
          << name << ": cases show its kernel (" << beyond->second << "); take it out of this table";
      continue;
    }
    EXPECT_EQ(said, shown) << name << " is run by: " << target::name_of(shown)
                           << "; its lowerers and passes say otherwise (target/operator_table.cpp)";
  }
}

// What is run as its parts has them.
TEST(Table, PartsAreThere) {
  for (const op::Definition& definition : op::all())
    EXPECT_TRUE(definition.decompose || target::cpu_execution_of(definition.name) != target::Execution::parts)
        << definition.name;
}

TEST(Table, IsThatOfThePage) {
  const std::string page = target::operators_page();
  EXPECT_EQ(read_text_file(SUPERSTEP_SOURCE "/docs/operators.md"), page)
      << "docs/operators.md is out of date: build/tests/matrix/test_matrix --write";
  for (const char* row : {"Conv ", "superstep.Adam ", "GridSample "})
    EXPECT_NE(page.find(row), std::string::npos);
}

}  // namespace superstep::matrix
