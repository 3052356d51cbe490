// Lists of the operators that vendors' compilers take.
#include <gtest/gtest.h>

#include "superstep/machine/machine.h"
#include "superstep/machine/operator_list.h"
#include "superstep/op/core/definition.h"
#include "tests/contains.h"

namespace superstep::machine {
namespace {

const std::string good = R"(id = "x"
name = "X 1"
source = "its pages"
machines = ["gc2"]
serves_only = false
operators = ["Add", "Relu"]
as_others = ["Gelu"]
no_derivative = ["Relu"]
)";

std::string refusal(const std::string& text) {
  try {
    parse_operator_list(text, "x.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_file);
    return error.what();
  }
  return "";
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = good;
  return text.replace(text.find(from), from.size(), to);
}

TEST(OperatorLists, SpeakOfKnownMachinesAndOperators) {
  ASSERT_FALSE(operator_lists().empty());
  for (const OperatorList& list : operator_lists()) {
    for (const std::string& machine : list.machines) EXPECT_NO_THROW(find_machine(machine)) << list.id;
    for (const auto* names : {&list.operators, &list.as_others})
      for (const std::string& name : *names) EXPECT_NE(op::find(name), nullptr) << list.id << ": " << name;
  }
}

TEST(OperatorLists, AreFoundByMachine) {
  ASSERT_EQ(operator_lists_of("bow").size(), 1U);
  EXPECT_TRUE(operator_lists_of("bow").front()->takes("Conv"));
  EXPECT_FALSE(operator_lists_of("bow").front()->takes("DFT"));
  EXPECT_TRUE(operator_lists_of("groqchip").empty());
}

TEST(OperatorLists, AreReadWithEveryKeyChecked) {
  const OperatorList list = parse_operator_list(good, "x.toml");
  EXPECT_TRUE(list.takes("Add") && list.takes("Gelu") && !list.takes("Mul"));
  EXPECT_TRUE(contains(refusal("id = ["), "x.toml: line 1"));
  EXPECT_TRUE(contains(refusal(replaced("name =", "names =")), "names"));
  EXPECT_TRUE(contains(refusal(replaced("\"X 1\"", "3")), "name"));
  EXPECT_TRUE(contains(refusal(replaced("false", "\"no\"")), "serves_only"));
  EXPECT_TRUE(contains(refusal(replaced("\"Add\", ", "\"Add\", \"Add\", ")), "'Add' twice"));
  EXPECT_TRUE(contains(refusal(replaced("[\"Gelu\"]", "[\"Add\"]")), "is in operators too"));
  EXPECT_TRUE(contains(refusal(replaced("[\"Relu\"]", "[\"Tan\"]")), "not taken at all"));
  EXPECT_TRUE(contains(refusal(replaced("[\"Gelu\"]", "[3]")), "as_others"));
}

}  // namespace
}  // namespace superstep::machine
