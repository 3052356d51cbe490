// What a written file holds beyond the standard operators: written, read again, and run.
#include "superstep/onnx/writer.h"
#include "tests/onnx/support.h"

namespace superstep::onnx {
namespace {

using testing::elements;
using testing::graph;
using testing::GraphParts;
using testing::model_bytes;
using testing::node;
using testing::parse;
using testing::port;
using testing::run;
using testing::values;

const Tensor x = values({2, 3}, {-1, 0, 1, 2, -3, 4});

Model one_of(const std::string& op, const std::string& domain) {
  GraphParts parts;
  parts.inputs = {port("x", testing::f32, {"2", "3"})};
  parts.outputs = {port("y", testing::f32, {"2", "3"})};
  parts.nodes = {node(op, {"x"}, {"y"}, {}, domain)};
  return parse(model_bytes(graph(parts), 17, {}, domain.empty() ? testing::Names{} : testing::Names{domain}));
}

std::string written(const Model& model) {
  return to_onnx([&](std::int64_t) { return model.import(); }, {.fixed_batch = 1, .producer_version = ""});
}

TEST(Writer, NamesTheDomainsOfItsOperators) {
  const Model model = one_of("Binarizer", "ai.onnx.ml");
  const std::string bytes = written(model);
  const Model again = parse(bytes);
  EXPECT_EQ(again.opsets().at("ai.onnx.ml"), 1);
  EXPECT_EQ(again.opsets().at(""), 13);
  EXPECT_EQ(elements(run(again, {x})[0]), (std::vector<double>{0, 0, 1, 1, 0, 1}));
}

TEST(Writer, NamesNoDomainThatIsNotUsed) {
  EXPECT_EQ(parse(written(one_of("Relu", ""))).opsets().size(), 1u);
}

// A model is the same file whichever of its constants was made first.
TEST(Writer, OrdersConstantsAsTheyAreRead) {
  const auto model = [](bool turned) {
    return to_onnx(
        [&](std::int64_t) {
          graph::Graph graph("g");
          const auto constant = [&](const char* name, float value) {
            return graph.add_constant(name, Tensor::full(ElementType::f32, {2}, value));
          };
          const auto given = graph.add_input("x", {ElementType::f32, {2}});
          const auto early = turned ? constant("b", 2) : constant("a", 1);
          const auto late = turned ? constant("a", 1) : constant("b", 2);
          const graph::ValueType type{ElementType::f32, {2}};
          const auto sum =
              graph.add_node("Add", {given, turned ? late : early}, std::span(&type, 1), {}, "sum");
          const auto product = graph.add_node("Mul", {graph.node(sum).outputs[0], turned ? early : late},
                                              std::span(&type, 1), {}, "product");
          graph.rename(graph.node(sum).outputs[0], "s");
          graph.rename(graph.node(product).outputs[0], "p");
          graph.add_output("y", graph.node(product).outputs[0]);
          return graph;
        },
        {.fixed_batch = 1, .producer_version = ""});
  };
  EXPECT_EQ(model(false), model(true));
}

TEST(Importer, FindsOperatorsInTheirOwnDomainAlone) {
  const auto refusal = [](const std::string& op, const std::string& domain) {
    return testing::error_of([&] { one_of(op, domain).import(); });
  };
  EXPECT_TRUE(superstep::contains(refusal("Binarizer", ""), "Binarizer"));
  EXPECT_TRUE(superstep::contains(refusal("Relu", "ai.onnx.ml"), "Relu"));
  EXPECT_EQ(refusal("Relu", ""), "");
}

TEST(Importer, GivesRandomNodesWithoutASeedNumbersOfTheirOwn) {
  GraphParts parts;
  parts.inputs = {port("x", testing::f32, {"2", "3"})};
  parts.outputs = {port("a", testing::f32, {"2", "3"}), port("b", testing::f32, {"2", "3"}),
                   port("c", testing::f32, {"2", "3"}), port("d", testing::f32, {"2", "3"})};
  const std::vector<Message> seed{testing::attribute("seed", 7.0f)};
  parts.nodes = {node("RandomNormalLike", {"x"}, {"a"}), node("RandomNormalLike", {"x"}, {"b"}),
                 node("RandomNormalLike", {"x"}, {"c"}, seed), node("RandomNormalLike", {"x"}, {"d"}, seed)};
  const Model model = parse(model_bytes(graph(parts), 17));
  const std::vector<Tensor> first = run(model, {x}), second = run(model, {x});
  EXPECT_NE(elements(first[0]), elements(first[1]));
  EXPECT_EQ(elements(first[2]), elements(first[3]));  // the file asks for the same numbers
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(elements(first[i]), elements(second[i]));
}

}  // namespace
}  // namespace superstep::onnx
