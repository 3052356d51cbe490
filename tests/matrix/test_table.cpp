// The printed table of operators says what the cases show.
#include <gtest/gtest.h>

#include <algorithm>

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

// Their kernels run in the update of a training step alone.
const std::set<std::string> only_in_updates = {"superstep.Adam", "superstep.Sgd"};

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
  for (const auto& [name, shown] : cpu_execution())
    if (!only_in_updates.contains(name)) {
      EXPECT_EQ(target::cpu_execution_of(name), shown)
          << name << " is run by: " << target::name_of(shown)
          << "; correct the lists in src/superstep/target/operator_table.cpp";
    }
}

TEST(Table, IsThatOfThePage) {
  const std::string page = target::operators_page();
  EXPECT_EQ(read_text_file(SUPERSTEP_SOURCE "/docs/operators.md"), page)
      << "docs/operators.md is out of date: build/tests/matrix/test_matrix --write";
  for (const char* row : {"Conv ", "superstep.Adam ", "GridSample "})
    EXPECT_NE(page.find(row), std::string::npos);
}

}  // namespace superstep::matrix
