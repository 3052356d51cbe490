// Whatever has a kernel has a cost on every style of machine: models that run are predicted.
#include <gtest/gtest.h>

#include <cmath>

#include "superstep/machine/cost_model.h"
#include "superstep/op/core/definition.h"
#include "superstep/target/operator_table.h"
#include "tests/matrix/built.h"

namespace superstep::matrix {
namespace {

// One machine of each style.
const std::vector<const char*> machines = {"gc200", "h100", "sn10", "groqchip"};

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

void expect_costs(const graph::Graph& graph, const char* what) {
  const machine::Precision precision = machine::precision_from_name("f32");
  for (const char* name : machines) {
    SCOPED_TRACE(std::string(what) + " on " + name);
    const auto model = machine::cost_model(machine::find_machine(name));
    const std::vector<machine::Work> works = machine::works_of(graph, precision, model->work_options());
    const std::vector<std::string> missing = machine::unsupported_operators(works);
    ASSERT_TRUE(missing.empty()) << "without a cost: " << list_of(missing);
    for (const machine::OperatorCost& cost : model->operators(graph, works, precision)) {
      const double seconds = cost.parts.total();
      EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0) << cost.work.op << ": " << seconds << " s";
      EXPECT_LT(seconds, 1) << cost.work.op << ": a case is small";
      EXPECT_FALSE(cost.how.empty()) << cost.work.op;
    }
  }
}

class Costs : public ::testing::TestWithParam<const Case*> {};

bool runs(const std::string& op) {
  const target::Execution execution = target::cpu_execution_of(op);
  return execution == target::Execution::kernel || execution == target::Execution::parts;
}

TEST_P(Costs, AreThereForwardsAndBackwards) {
  if (!runs(GetParam()->op)) return;
  const ElementType element = GetParam()->reduced ? ElementType::f32 : ElementType::f64;
  if (const auto built = build(*GetParam(), element)) expect_costs(built->graph, "value");
  if (GetParam()->smooth == op::test::Smooth::no) return;
  if (const auto built = build_gradient(*GetParam(), element)) expect_costs(built->graph, "gradient");
}

INSTANTIATE_TEST_SUITE_P(Cases, Costs, ::testing::ValuesIn(op::test::all_parameters()),
                         [](const auto& instance) {
                           return op::test::name_of_test(*instance.param, instance.index);
                         });

TEST(CostsOfOperators, AreStatedOfAllThatHasAKernel) {
  int kernels = 0;
  for (const op::Definition& definition : op::all()) {
    if (!runs(std::string(definition.name))) continue;
    ++kernels;
    EXPECT_NE(definition.traits.work, op::WorkKind::unsupported)
        << definition.name << ": state traits.work in its definition";
  }
  EXPECT_GT(kernels, 100);
}

}  // namespace
}  // namespace superstep::matrix
