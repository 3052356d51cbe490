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
