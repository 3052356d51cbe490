// Results whose length the data say, in bounded form, against the same file imported for the very data: then
// every shape is what it is.
#include <algorithm>
#include <numeric>

#include "superstep/base/random.h"
#include "superstep/onnx/writer.h"
#include "tests/onnx/support.h"

namespace superstep::onnx {
namespace {

using testing::attribute;
using testing::contains;
using testing::error_of;
using testing::floats;
using testing::graph;
using testing::GraphParts;
using testing::integers;
using testing::model_bytes;
using testing::Names;
using testing::node;
using testing::parse;
using testing::port;

using Nodes = std::vector<Message>;

// x [6, 4] of numbers from -1 to 1, the rows of which that begin above zero are `rows` [n, 4], their numbers
// `indices` [1, n], and their count `count`.
Nodes chosen_rows(const Nodes& more) {
  Nodes nodes = {
      node("Gather", {"x", "zero"}, {"first"}, {attribute("axis", 1)}),
      node("Greater", {"first", "zero_f"}, {"mask"}),
      node("NonZero", {"mask"}, {"indices"}),
      node("Squeeze", {"indices", "zero_list"}, {"picks"}),
      node("Gather", {"x", "picks"}, {"rows"}, {attribute("axis", 0)}),
      node("Shape", {"rows"}, {"shape"}),
      node("Gather", {"shape", "zero"}, {"count"}),
  };
  nodes.insert(nodes.end(), more.begin(), more.end());
  return nodes;
}

struct Case {
  const char* name;
  Nodes nodes;  // give y
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::vector<Message> initializers() {
  return {integers("zero", {}, {0}),
          integers("one", {}, {1}),
          integers("three", {}, {3}),
          integers("minus", {}, {-1}),
          integers("minus_list", {1}, {-1}),
          integers("zero_list", {1}, {0}),
          integers("one_list", {1}, {1}),
          integers("two_list", {1}, {2}),
          integers("three_list", {1}, {3}),
          integers("four_list", {1}, {4}),
          integers("far", {1}, {INT64_MAX}),
          integers("minus_two", {1}, {-2}),
          integers("flat", {1}, {-1}),
          integers("pairs", {2}, {-1, 2}),
          integers("twice", {2}, {1, 2}),
          integers("up", {2}, {1, 0}),
          integers("places", {6}, {0, 1, 2, 3, 4, 5}),
          floats("zero_f", {}, {0}),
          floats("half", {1}, {0.5F}),
          floats("low", {1}, {0.1F}),
          floats("scale", {4}, {1, 2, -1, 0.5F}),
          floats("square", {4, 4}, {1, 2, 0, 1, -1, 0.5F, 2, 1, 0, 1, 1, -2, 1, 1, 0, 1}),
          floats("zeros", {6, 4}, std::vector<float>(24, 0)),
          floats("seven", {6}, std::vector<float>(6, 7))};
}

GraphParts parts_of(const Nodes& nodes) {
  GraphParts parts;
  parts.inputs = {port("x", testing::f32, {"6", "4"})};
  parts.outputs = {port("y", testing::f32, {})};
  parts.initializers = initializers();
  parts.nodes = nodes;
  return parts;
}

// `above`: how many rows begin above zero.
Tensor drawn(int above, std::uint64_t seed) {
  Tensor x(ElementType::f32, {6, 4});
  RandomStream random(seed);
  std::vector<int> order(6);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = 6; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::int64_t i = 0; i < 24; ++i) x.set(i, 2 * random.uniform() - 1);
  for (int i = 0; i < 6; ++i) {
    const std::int64_t first = 4 * order[static_cast<std::size_t>(i)];
    x.set(first, (i < above ? 1 : -1) * (0.01 + std::abs(x.at(first))));
  }
  return x;
}

struct Answer {
  Tensor y;
  std::map<int, std::int64_t> counts;  // by axis
  std::int64_t beyond = 0;
};

Answer answer_of(const graph::Graph& graph, const Tensor& x) {
  const auto outputs = op::evaluate(graph, std::vector<Tensor>{x}).outputs;
  Answer answer{.y = outputs.at(0), .counts = {}};
  for (std::size_t i = 1; i < outputs.size(); ++i) {
    const std::string& name = graph.outputs()[i].name;
    const auto value = static_cast<std::int64_t>(outputs[i].at(0));
    if (name == beyond_bounds) answer.beyond = value;
    if (name.starts_with("y.count.")) answer.counts[std::stoi(name.substr(8))] = value;
    if (name == "y.count") answer.counts[-1] = value;
  }
  return answer;
}

// The part of `y` that is taken, and whether all of the rest is zero.
std::pair<std::vector<double>, bool> taken_part(const Answer& answer, const Shape& exact) {
  std::vector<double> part;
  bool zeros = true;
  const Shape& shape = answer.y.shape();
  const std::vector<std::int64_t> strides = shape.row_major_strides();
  for (std::int64_t i = 0; i < answer.y.element_count(); ++i) {
    bool inside = true;
    for (int axis = 0; axis < shape.rank(); ++axis)
      inside = inside && i / strides[static_cast<std::size_t>(axis)] % shape[axis] < exact[axis];
    if (inside)
      part.push_back(answer.y.at(i));
    else
      zeros = zeros && answer.y.at(i) == 0;
  }
  return {part, zeros};
}

class Bounded : public ::testing::TestWithParam<Case> {};

TEST_P(Bounded, GivesWhatTheDataGive) {
  const Model model = parse(model_bytes(graph(parts_of(GetParam().nodes)), 18));
  const graph::Graph bounded = model.import({.bounds = {{"*", -1}}});
  EXPECT_EQ(bounded.value(bounded.outputs()[0].value).name, "y");
  for (int above : {0, 1, 2, 4, 6}) {
    SCOPED_TRACE(above);
    if (above == 0 && std::string(GetParam().name) == "LargestRow") continue;  // of nothing there is none
    const Tensor x = drawn(above, 17 + static_cast<std::uint64_t>(above));
    const Tensor exact =
        op::evaluate(model.import({.values = {{"x", x}}}), std::vector<Tensor>{x}).outputs.at(0);
    const Answer answer = answer_of(bounded, x);
    ASSERT_EQ(answer.y.shape().rank(), exact.shape().rank());
    for (int axis = 0; axis < exact.shape().rank(); ++axis) {
      const auto only = answer.counts.find(-1), own = answer.counts.find(axis);
      const bool same = answer.y.shape()[axis] == exact.shape()[axis];
      if (own != answer.counts.end()) {
        EXPECT_EQ(own->second, exact.shape()[axis]);
      }
      if (!same && own == answer.counts.end()) {
        ASSERT_NE(only, answer.counts.end()) << "axis " << axis;
        EXPECT_EQ(only->second, exact.shape()[axis]);
      }
    }
    const auto [part, zeros] = taken_part(answer, exact.shape());
    ASSERT_EQ(part.size(), static_cast<std::size_t>(exact.element_count()));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const double wanted = exact.at(static_cast<std::int64_t>(i));
      // Of nothing there is no mean, and no largest: both ways say so in their own way.
      if (above > 0) {
        EXPECT_NEAR(part[i], wanted, 2e-6 * (1 + std::abs(wanted))) << "element " << i;
      }
    }
    EXPECT_TRUE(zeros);
    EXPECT_EQ(answer.beyond, 0);
  }
}

const Case cases[] = {
    {"FirstColumn", chosen_rows({node("Slice", {"rows", "zero_list", "one_list", "one_list"}, {"column"}),
                                 node("Squeeze", {"column", "one_list"}, {"y"})})},
    {"EveryOtherColumn",
     chosen_rows({node("Slice", {"rows", "zero_list", "far", "one_list", "two_list"}, {"y"})})},
    {"OfOutputsName", chosen_rows({node("Relu", {"rows"}, {"y"}), node("Relu", {"y"}, {"z"})})},

    {"Rows", chosen_rows({node("Relu", {"rows"}, {"y"})})},
    {"Numbers", chosen_rows({node("Identity", {"indices"}, {"y"})})},
    {"CompressedRows",
     {node("Gather", {"x", "zero"}, {"first"}, {attribute("axis", 1)}),
      node("Greater", {"first", "zero_f"}, {"mask"}),
      node("Compress", {"x", "mask"}, {"rows"}, {attribute("axis", 0)}),
      node("Mul", {"rows", "scale"}, {"y"})}},
    {"ChosenElements",
     {node("Greater", {"x", "zero_f"}, {"mask"}), node("NonZero", {"mask"}, {"at"}),
      node("Transpose", {"at"}, {"turned"}), node("GatherND", {"x", "turned"}, {"y"})}},
    {"NonZeroOfChosen", chosen_rows({node("Relu", {"rows"}, {"r"}), node("NonZero", {"r"}, {"y"})})},
    {"Sum", chosen_rows({node("ReduceSum", {"rows", "zero_list"}, {"y"})})},
    {"Mean", chosen_rows({node("ReduceMean", {"rows", "zero_list"}, {"y"})})},
    {"MeanOfAll", chosen_rows({node("ReduceMean", {"rows"}, {"y"})})},
    {"Largest", chosen_rows({node("ReduceMax", {"rows", "zero_list"}, {"y"}, {attribute("keepdims", 0)})})},
    {"Smallest", chosen_rows({node("ReduceMin", {"rows"}, {"y"})})},
    {"Product", chosen_rows({node("ReduceProd", {"rows", "zero_list"}, {"y"})})},
    {"MeanOfColumns", chosen_rows({node("ReduceMean", {"rows", "one_list"}, {"y"})})},
    {"SoftmaxOverRows", chosen_rows({node("Softmax", {"rows"}, {"y"}, {attribute("axis", 0)})})},
    {"SoftmaxOverColumns", chosen_rows({node("Softmax", {"rows"}, {"y"}, {attribute("axis", 1)})})},
    {"LargestRow", chosen_rows({node("ArgMax", {"rows"}, {"y"}, {attribute("axis", 0)})})},
    {"RunningSum", chosen_rows({node("CumSum", {"rows", "zero"}, {"y"}, {attribute("reverse", 1)})})},
    {"Linear", chosen_rows({node("MatMul", {"rows", "square"}, {"y"})})},
    {"Gram", chosen_rows({node("Transpose", {"rows"}, {"t"}), node("MatMul", {"t", "rows"}, {"y"})})},
    {"Pairs", chosen_rows({node("Transpose", {"rows"}, {"t"}), node("MatMul", {"rows", "t"}, {"y"})})},
    {"Attention", chosen_rows({node("Transpose", {"rows"}, {"t"}), node("MatMul", {"rows", "t"}, {"scores"}),
                               node("Softmax", {"scores"}, {"p"}, {attribute("axis", -1)}),
                               node("MatMul", {"p", "rows"}, {"y"})})},
    {"Einsum", chosen_rows({node("Einsum", {"rows", "rows"}, {"y"}, {attribute("equation", "ij,ik->jk")})})},
    {"JoinedAndScaled", chosen_rows({node("Concat", {"rows", "x", "rows"}, {"j"}, {attribute("axis", 0)}),
                                     node("Mul", {"j", "scale"}, {"y"})})},
    {"JoinedAlongColumns", chosen_rows({node("Concat", {"rows", "rows"}, {"y"}, {attribute("axis", 1)})})},
    {"Flattened", chosen_rows({node("Reshape", {"rows", "flat"}, {"y"})})},
    {"Regrouped", chosen_rows({node("Reshape", {"rows", "pairs"}, {"y"})})},
    {"TurnedAndFlattened",
     chosen_rows({node("Transpose", {"rows"}, {"t"}), node("Reshape", {"t", "flat"}, {"y"})})},
    {"BackByItsShape",
     chosen_rows({node("Reshape", {"rows", "flat"}, {"f"}), node("Reshape", {"f", "shape"}, {"y"})})},
    {"FirstThree", chosen_rows({node("Slice", {"rows", "zero_list", "three_list", "zero_list"}, {"y"})})},
    {"AllButTheFirst", chosen_rows({node("Slice", {"rows", "one_list", "far", "zero_list"}, {"y"})})},
    {"LastTwo", chosen_rows({node("Slice", {"rows", "minus_two", "far", "zero_list"}, {"y"})})},
    {"AllButTheLast", chosen_rows({node("Slice", {"rows", "zero_list", "minus_list", "zero_list"}, {"y"})})},
    {"AsManyOfAll", chosen_rows({node("Unsqueeze", {"count", "zero_list"}, {"end"}),
                                 node("Slice", {"x", "zero_list", "end", "zero_list"}, {"y"})})},
    {"BehindTheCount", chosen_rows({node("Concat", {"x", "rows"}, {"j"}, {attribute("axis", 0)}),
                                    node("Unsqueeze", {"count", "zero_list"}, {"begin"}),
                                    node("Slice", {"j", "begin", "far", "zero_list"}, {"y"})})},
    {"BestThree",
     chosen_rows({node("Gather", {"rows", "one"}, {"column"}, {attribute("axis", 1)}),
                  node("Min", {"count", "three"}, {"k"}), node("Reshape", {"k", "one_list"}, {"ks"}),
                  node("TopK", {"column", "ks"}, {"values", "best"}, {attribute("axis", 0)}),
                  node("Gather", {"rows", "best"}, {"y"}, {attribute("axis", 0)})})},
    {"Sorted", chosen_rows({node("Slice", {"shape", "zero_list", "one_list"}, {"k"}),
                            node("TopK", {"rows", "k"}, {"y", "at"},
                                 {attribute("axis", 0), attribute("largest", 0)})})},
    {"WrittenBack", chosen_rows({node("Transpose", {"indices"}, {"at"}), node("Relu", {"rows"}, {"r"}),
                                 node("ScatterND", {"zeros", "at", "r"}, {"y"})})},
    {"Added", chosen_rows({node("Expand", {"picks_column", "shape"}, {"at"}),
                           node("ScatterElements", {"x", "at", "rows"}, {"y"},
                                {attribute("axis", 0), attribute("reduction", "add")})})},
    {"ZerosAsMany",
     chosen_rows({node("ConstantOfShape", {"shape"}, {"zs"}), node("Add", {"zs", "scale"}, {"y"})})},
    {"Counted", chosen_rows({node("Range", {"zero", "count", "one"}, {"y"})})},
    {"RepeatedAsOften", chosen_rows({node("Expand", {"scale", "shape"}, {"y"})})},
    {"Tiled", chosen_rows({node("Unsqueeze", {"count", "zero_list"}, {"c"}),
                           node("Concat", {"c", "one_list"}, {"times"}, {attribute("axis", 0)}),
                           node("Tile", {"square", "times"}, {"y"})})},
    {"RepeatedColumns", chosen_rows({node("Tile", {"rows", "twice"}, {"y"})})},
    {"LastRow", chosen_rows({node("Concat", {"x", "rows"}, {"j"}, {attribute("axis", 0)}),
                             node("Gather", {"j", "minus"}, {"y"}, {attribute("axis", 0)})})},
    {"Norm", chosen_rows({node("LayerNormalization", {"rows", "scale"}, {"y"})})},
    {"HowMany", chosen_rows({node("Cast", {"count"}, {"y"}, {attribute("to", 1)})})},
    {"Compared",
     chosen_rows({node("Size", {"rows"}, {"size"}), node("Cast", {"size"}, {"f"}, {attribute("to", 1)}),
                  node("ReduceSum", {"rows"}, {"sum"}, {attribute("keepdims", 0)}),
                  node("Div", {"sum", "f"}, {"y"})})},
};

Case with_columns(Case one) {
  if (std::string(one.name) == "Added")
    one.nodes.insert(one.nodes.begin() + 7, node("Unsqueeze", {"picks", "one_list"}, {"picks_column"}));
  return one;
}

std::vector<Case> all_cases() {
  std::vector<Case> result;
  for (const Case& one : cases) result.push_back(with_columns(one));
  return result;
}

INSTANTIATE_TEST_SUITE_P(Nodes, Bounded, ::testing::ValuesIn(all_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

// Boxes of a picture, four corners a row of x, whose first number decides whether they come into question.
Nodes boxes() {
  return chosen_rows(
      {node("Abs", {"rows"}, {"corners"}), node("Unsqueeze", {"corners", "zero_list"}, {"one_picture"}),
       node("ReduceMax", {"rows", "one_list"}, {"best"}, {attribute("keepdims", 0)}),
       node("Unsqueeze", {"best", "up"}, {"scores"}),
       node("NonMaxSuppression", {"one_picture", "scores", "four_list", "half", "low"}, {"kept"}),
       node("Gather", {"kept", "two_list"}, {"column"}, {attribute("axis", 1)}),
       node("Squeeze", {"column", "one_list"}, {"numbers"}),
       node("Gather", {"corners", "numbers"}, {"y"}, {attribute("axis", 0)})});
}

TEST(BoundedBoxes, AreThoseThatAreKept) {
  const Model model = parse(model_bytes(graph(parts_of(boxes())), 18));
  const graph::Graph bounded = model.import({.bounds = {{"*", -1}}});
  int fewer = 0;
  for (std::uint64_t seed = 1; seed < 30; ++seed) {
    const Tensor x = drawn(static_cast<int>(seed % 7), seed);
    const Tensor exact =
        op::evaluate(model.import({.values = {{"x", x}}}), std::vector<Tensor>{x}).outputs.at(0);
    const Answer answer = answer_of(bounded, x);
    ASSERT_EQ(answer.counts.at(-1), exact.shape()[0]);
    const auto [part, zeros] = taken_part(answer, exact.shape());
    EXPECT_EQ(part, testing::elements(exact));
    EXPECT_TRUE(zeros);
    fewer += exact.shape()[0] < static_cast<std::int64_t>(seed % 7) ? 1 : 0;
  }
  EXPECT_GT(fewer, 5);  // some were suppressed
}

TEST(BoundedBoxes, AreWrittenAsAFunctionAndReadAgain) {
  const Model model = parse(model_bytes(graph(parts_of(boxes())), 18));
  const auto imported = [&](std::int64_t) { return model.import({.bounds = {{"*", -1}}}); };
  const Model again = parse(to_onnx(imported, {.fixed_batch = 1, .producer_version = ""}));
  EXPECT_GE(again.ir_version(), 8);
  EXPECT_EQ(again.opsets().at("superstep"), 1);
  const graph::Graph read = again.import();
  for (std::uint64_t seed = 1; seed < 8; ++seed) {
    const Tensor x = drawn(static_cast<int>(seed % 7), seed);
    const Answer one = answer_of(imported(1), x), other = answer_of(read, x);
    EXPECT_EQ(testing::elements(one.y), testing::elements(other.y));
    EXPECT_EQ(one.counts, other.counts);
  }
}

TEST(Bounds, LeaveOutWhatHasNoRoomAndSayHowMuch) {
  const Model model = parse(model_bytes(graph(parts_of(chosen_rows({node("Relu", {"rows"}, {"y"})}))), 18));
  const graph::Graph bounded = model.import({.bounds = {{"the_NonZero", 3}}});
  for (int above : {2, 3, 5}) {
    const Answer answer = answer_of(bounded, drawn(above, 5));
    EXPECT_EQ(answer.y.shape(), (Shape{3, 4}));
    EXPECT_EQ(answer.counts.at(-1), std::min(above, 3));
    EXPECT_EQ(answer.beyond, std::max(above - 3, 0));
  }
}

TEST(Bounds, MeetNodesByNameOrByWhatTheyGive) {
  const Model model = parse(model_bytes(graph(parts_of(chosen_rows({node("Relu", {"rows"}, {"y"})}))), 18));
  EXPECT_EQ(model.import({.bounds = {{"indices", 2}}})
                .type(model.import({.bounds = {{"indices", 2}}}).outputs()[0].value)
                .shape,
            (Shape{2, 4}));
  EXPECT_TRUE(contains(error_of([&] { model.import({.bounds = {{"nothing", 2}}}); }), "--bound nothing"));
  EXPECT_TRUE(contains(error_of([&] { model.import(); }), "--bound"));
}

TEST(Bounds, RefuseWhatMixesWhatIsTakenWithWhatIsNot) {
  const auto refused = [](const Nodes& more) {
    const Model model = parse(model_bytes(graph(parts_of(chosen_rows(more))), 18));
    return error_of([&] { model.import({.bounds = {{"*", -1}}}); });
  };
  EXPECT_TRUE(contains(refused({node("Transpose", {"rows"}, {"t"}), node("MatMul", {"rows", "t"}, {"p"}),
                                node("Det", {"p"}, {"y"})}),
                       "whose length depends on the data"));
  EXPECT_TRUE(
      contains(refused({node("Unsqueeze", {"rows", "up"}, {"r"}), node("GlobalAveragePool", {"r"}, {"y"})}),
               "whose length depends on the data"));
  EXPECT_TRUE(contains(refused({node("Slice", {"rows", "zero_list", "far", "zero_list", "two_list"}, {"y"})}),
                       "every other place"));
}

}  // namespace
}  // namespace superstep::onnx
