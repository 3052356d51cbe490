// Every operator through the same tests, from one table of cases (cases/).
#include <cstring>
#include <set>

#include "superstep/op/core/coverage.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

class Matrix : public testing::TestWithParam<const Case*> {};

// The function, with its floating results a tenth of a percent off in one kind of graph of the checker: as
// if a derivative rule were wrong by that much.
Function wrong_in(const std::string& mode, const Function& function) {
  return [=](Builder& builder, std::span<const Var> inputs) {
    std::vector<Var> outputs = function(builder, inputs);
    if (builder.graph().name() == mode)
      for (Var& output : outputs)
        if (is_floating(output.element())) output = output * 1.001;
    return outputs;
  };
}

void expect_caught(const Case& item, const std::string& mode, const std::string& message) {
  const Status status = check_gradients(wrong_in(mode, item.function), item.inputs, {.directions = 1});
  ASSERT_FALSE(status) << "a derivative that is off by 0.1 % in " << mode << " was not noticed";
  EXPECT_NE(std::string(status.error().what()).find(message), std::string::npos) << status.error().what();
}

std::vector<Tensor> rounded(const std::vector<Tensor>& inputs, ElementType element) {
  std::vector<Tensor> result;
  for (const Tensor& input : inputs)
    result.push_back(is_floating(input.type()) ? input.converted(element) : input);
  return result;
}

Tensor rounded_once(const Tensor& exact, ElementType element) {
  Tensor result(element, exact.shape());
  narrow(widen<double>(exact), result);
  return result;
}

double unit_roundoff(ElementType element) {
  return element == ElementType::f32 ? 0x1p-24 : element == ElementType::f16 ? 0x1p-11 : 0x1p-8;
}

// Reduced precision must be the result in f64 rounded once where the case is one node without constants of
// its own, and within a few roundings a node otherwise.
void expect_rounded(const Case& item, ElementType element) {
  const std::vector<Tensor> inputs = rounded(item.inputs, element);
  const Built built = build(item.function, inputs);
  const std::vector<Tensor> reduced = evaluate(built.graph, built.inputs).outputs;
  const std::vector<Tensor> exact = results(item.function, rounded(inputs, ElementType::f64));
  bool own_constants = false;
  for (const graph::Value& value : built.graph.values())
    own_constants =
        own_constants || (value.kind == graph::ValueKind::constant && is_floating(value.type.element));
  const bool once = built.graph.node_count() == 1 && !own_constants;
  const double tolerance =
      once ? 0 : 4 * static_cast<double>(built.graph.node_count()) * unit_roundoff(element);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (is_floating(exact[i].type()))
      expect_values(reduced[i], values(rounded_once(exact[i], element)), tolerance);
    else
      expect_equal(reduced[i], exact[i]);
  }
}

}  // namespace

TEST_P(Matrix, IsVerifiedAndGivesTheSameBitsTwice) {
  const Built built = build(GetParam()->function, GetParam()->inputs);
  const auto first = evaluate(built.graph, built.inputs).outputs,
             second = evaluate(built.graph, built.inputs).outputs;
  for (std::size_t i = 0; i < first.size(); ++i)
    EXPECT_EQ(std::memcmp(first[i].bytes(), second[i].bytes(), first[i].byte_count()), 0);
  bool found = false;
  for (const graph::Node& node : built.graph.nodes()) {
    found = found || node.op == GetParam()->op;
    const Cost part = cost(built.graph, node);
    EXPECT_TRUE(std::isfinite(part.flops) && part.flops >= 0 && part.bytes >= 0);
  }
  EXPECT_TRUE(found) << "the case has no " << GetParam()->op;
}

TEST_P(Matrix, HasDerivativesThatFiniteDifferencesConfirm) {
  const Case& item = *GetParam();
  if (item.smooth == Smooth::no) return;
  const bool second_order = item.smooth == Smooth::twice;
  const Status status = check_gradients(
      item.function, item.inputs,
      {.tolerance = second_order ? 2e-6 : 1e-6, .directions = 2, .second_order = second_order});
  EXPECT_TRUE(status) << status.error().what();
}

TEST_P(Matrix, HasNegativeControls) {
  const Case& item = *GetParam();
  if (item.smooth == Smooth::no || item.smooth == Smooth::zero) return;
  expect_caught(item, "forward mode", "forward mode gives");
  expect_caught(item, "reverse mode", "the transpose test fails");
}

TEST_P(Matrix, RoundsOnceInReducedPrecision) {
  if (!GetParam()->reduced) return;
  for (ElementType element : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    SCOPED_TRACE(name_of(element));
    expect_rounded(*GetParam(), element);
  }
}

TEST_P(Matrix, EqualsItsDecomposition) {
  const Case& item = *GetParam();
  const Definition& definition = get(item.op);
  if (!definition.decompose) return;
  const Function decomposed = [&](Builder& builder, std::span<const Var> inputs) {
    std::vector<Var> outputs = item.function(builder, inputs);
    // Replaces outputs of the operator's nodes by those of the decomposition.
    const std::size_t count = builder.graph().node_count();
    for (std::size_t n = 0; n < count; ++n) {
      const graph::Node node = builder.graph().nodes()[n];
      if (node.op != item.op) continue;
      std::vector<Var> node_inputs, node_outputs;
      for (graph::ValueId id : node.inputs) node_inputs.push_back(id.valid() ? builder.var(id) : Var());
      for (graph::ValueId id : node.outputs) node_outputs.push_back(id.valid() ? builder.var(id) : Var());
      const auto parts = definition.decompose({builder, node.attributes, node_inputs, node_outputs});
      for (Var& output : outputs)
        for (std::size_t i = 0; i < node_outputs.size(); ++i)
          if (output.id() == node_outputs[i].id()) output = parts.at(i);
    }
    return outputs;
  };
  const Built built = build(decomposed, item.inputs);
  const std::vector<Tensor> whole = results(item.function, item.inputs);
  const std::vector<Tensor> parts = evaluate(built.graph, built.inputs).outputs;
  for (std::size_t i = 0; i < whole.size(); ++i) expect_equal(parts[i], whole[i], 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Cases, Matrix, testing::ValuesIn(all_parameters()),
                         [](const auto& instance) { return name_of_test(*instance.param, instance.index); });

TEST(Coverage, EveryOperatorHasACase) {
  std::set<std::string> with_case;
  for (const Case& item : all_cases()) with_case.insert(item.op);
  for (const Coverage& row : coverage()) EXPECT_TRUE(with_case.contains(row.name)) << row.name;
}

TEST(Coverage, EveryOperatorIsEvaluatedAndOursDecompose) {
  for (const Coverage& row : coverage()) {
    EXPECT_TRUE(row.evaluation) << row.name;
    EXPECT_EQ(row.vjp, row.jvp) << row.name;
    // ONNX has no random numbers by a counter; boxes that are kept go to files as a function.
    const std::set<std::string_view> alone = {"superstep.RandomMask", "superstep.RandomNormal",
                                              "superstep.KeptBoxes"};
    if (row.since_opset == 0 && !alone.contains(row.name)) {
      EXPECT_TRUE(row.decomposition) << row.name;
    }
  }
}

TEST(Coverage, NamesAreUniqueAndTheNearestIsOffered) {
  std::set<std::string_view> names;
  for (const Definition& definition : all())
    EXPECT_TRUE(names.insert(definition.name).second) << definition.name;
  try {
    get("Sofmax");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("did you mean 'Softmax'?"), std::string::npos) << error.what();
  }
}

}  // namespace superstep::op::test
