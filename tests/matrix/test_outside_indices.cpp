// An index that lies outside what it points into is refused on every target, with the node, the index and
// where it may lie; known when the graph is compiled, before anything runs.
#include <gtest/gtest.h>

#include "superstep/op/core/definition.h"
#include "tests/expect_error.h"
#include "tests/matrix/built.h"
#include "tests/op/cases/case.h"

namespace superstep::matrix {
namespace {

using graph::Attributes;
using op::test::i64;
using op::test::random_tensor;

struct Outside {
  const char* op;
  std::vector<Tensor> inputs;
  std::size_t indices;  // which of them
  std::string said;
  Attributes attributes = {};
  std::vector<std::size_t> constants = {};
};

const char* const targets[] = {"reference", "cpu", "gc200"};

Built graph_of(const Outside& item, ElementType element, bool known) {
  graph::Graph graph("outside");
  op::Builder b(graph);
  b.set_name("the node");
  std::vector<op::Var> inputs;
  std::vector<Tensor> given;
  for (std::size_t i = 0; i < item.inputs.size(); ++i) {
    const Tensor& input = item.inputs[i];
    if (input.element_count() == 0) {  // left out
      inputs.emplace_back();
      continue;
    }
    const Tensor typed = is_floating(input.type()) ? input.converted(element) : input;
    const bool constant = std::ranges::find(item.constants, i) != item.constants.end();
    if (constant || (known && i == item.indices)) {
      inputs.push_back(b.constant(typed));
      continue;
    }
    inputs.push_back(b.input("x" + std::to_string(i), typed.type(), typed.shape()));
    given.push_back(typed);
  }
  b.output("y", b.node(item.op, inputs, item.attributes, 1)[0]);
  return {std::move(graph), std::move(given)};
}

std::vector<Outside> all() {
  const Tensor table = random_tensor({4, 3}, 1), scores = random_tensor({2, 3}, 2);
  const Tensor sequence = random_tensor({5, 2, 3}, 3), picture = random_tensor({2, 3, 6, 6}, 4);
  const Tensor none(ElementType::f64, Shape{0});
  const std::string of_four = "of input indices lies outside [-4, 3]", target = "input target holds ";
  return {
      {"Gather", {table, i64({2, 1}, {1, 4})}, 1, "index 4 " + of_four},
      {"Gather", {table, i64({2}, {-5, 0})}, 1, "index -5 " + of_four},
      {"Gather",
       {table, i64({2}, {0, 3})},
       1,
       "index 3 of input indices lies outside [-3, 2]",
       {{"axis", std::int64_t{1}}}},
      {"GatherElements", {table, i64({1, 3}, {0, 3, 9})}, 1, "index 9 " + of_four},
      {"GatherND", {table, i64({1, 2}, {0, -4})}, 1, "index -4 of input indices lies outside [-3, 2]"},
      {"ScatterElements", {table, i64({1, 3}, {0, 3, 4}), random_tensor({1, 3}, 5)}, 1, "index 4 " + of_four},
      {"ScatterND", {table, i64({2, 1}, {0, 7}), random_tensor({2, 3}, 6)}, 1, "index 7 " + of_four},
      {"ScatterND",
       {table, i64({2, 1}, {0, 7}), random_tensor({2, 3}, 6)},
       1,
       "index 7 " + of_four,
       {{"reduction", std::string("add")}}},
      {"NegativeLogLikelihoodLoss", {scores, i64({2}, {0, 3})}, 1, target + "3, expected 0 to 2"},
      {"SoftmaxCrossEntropyLoss", {scores, i64({2}, {-1, 0})}, 1, target + "-1, expected 0 to 2"},
      {"SoftmaxCrossEntropyLoss",
       {scores, i64({2}, {-1, 5})},
       1,
       target + "5, expected 0 to 2 or -1",
       {{"ignore_index", std::int64_t{-1}}}},
      {"ReverseSequence", {sequence, i64({2}, {5, 6})}, 1, "input sequence_lens holds 6, expected 0 to 5"},
      {"ReverseSequence", {sequence, i64({2}, {5, -1})}, 1, "input sequence_lens holds -1, expected 0 to 5"},
      {"RNN",
       {sequence, random_tensor({1, 2, 3}, 7), random_tensor({1, 2, 2}, 8), none, i64({2}, {1, 6})},
       4,
       "input sequence_lens holds 6, expected 0 to 5"},
      {"TensorScatter",
       {random_tensor({2, 4, 3}, 9), random_tensor({2, 2, 3}, 10), i64({2}, {0, 3})},
       2,
       "input write_indices holds 3, expected 0 to 2"},
      {"RoiAlign",
       {picture, random_tensor({1, 4}, 11), i64({1}, {2})},
       2,
       "input batch_indices holds 2, expected 0 to 1",
       {{"sampling_ratio", std::int64_t{1}}}},
      {"ArrayFeatureExtractor", {table, i64({2}, {0, 3})}, 1, "input Y holds 3, expected 0 to 2"},
      {"RotaryEmbedding",
       {random_tensor({1, 1, 2, 4}, 12), random_tensor({5, 2}, 13), random_tensor({5, 2}, 14),
        i64({1, 2}, {0, 5})},
       3,
       "input position_ids holds 5, expected 0 to 4"},
      {"Attention",
       {random_tensor({1, 1, 2, 4}, 15), random_tensor({1, 1, 3, 4}, 16), random_tensor({1, 1, 3, 4}, 17),
        none, none, none, i64({1}, {4})},
       6,
       "input nonpad_kv_seqlen holds 4, expected 0 to 3"},
      {"superstep.GatherRows", {table, i64({2}, {-2, 0})}, 1, "-2"},
      {"superstep.SegmentSum", {table, i64({4}, {0, 1, 2, 1})}, 1, "2", {{"count", std::int64_t{2}}}},
  };
}

TEST(OutsideIndices, AreRefusedOnEveryTarget) {
  for (const Outside& item : all())
    for (const char* target : targets) {
      SCOPED_TRACE(std::string(item.op) + " on " + target);
      expect_error(ErrorCode::invalid_argument, {"the node", item.said},
                   [&] { run(target, graph_of(item, ElementType::f32, false)); });
    }
}

TEST(OutsideIndices, OfOtherTypesAreRefusedToo) {
  for (const Outside& given : all()) {
    if (std::string(given.op) == "TensorScatter") continue;
    Outside item = given;
    item.inputs[item.indices] = item.inputs[item.indices].converted(ElementType::i32);
    for (const ElementType element : {ElementType::bf16, ElementType::f64}) {
      SCOPED_TRACE(std::string(item.op) + " in " + name_of(element));
      expect_error(ErrorCode::invalid_argument, {"the node", item.said},
                   [&] { run("cpu", graph_of(item, element, false)); });
    }
  }
}

TEST(OutsideIndices, ThatAreKnownAreRefusedBeforeARun) {
  for (const Outside& item : all()) {
    if (!std::string(item.op).starts_with("Gather") && !std::string(item.op).starts_with("Scatter")) continue;
    SCOPED_TRACE(item.op);
    try {
      graph_of(item, ElementType::f32, true);
      ADD_FAILURE() << "it was built";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(item.said), std::string::npos) << error.what();
    }
  }
}

// What is ignored may lie anywhere, and the ends belong to the range.
TEST(OutsideIndices, AreNotWhatLiesAtTheEnds) {
  Outside item{"SoftmaxCrossEntropyLoss",
               {random_tensor({3, 3}, 2), i64({3}, {0, 2, -100})},
               1,
               "",
               {{"ignore_index", std::int64_t{-100}}}};
  for (const char* target : targets)
    EXPECT_NO_THROW(run(target, graph_of(item, ElementType::f32, false))) << target;
  item = {"Gather", {random_tensor({4, 3}, 1), i64({2}, {-4, 3})}, 1, ""};
  for (const char* target : targets)
    EXPECT_NO_THROW(run(target, graph_of(item, ElementType::f32, false))) << target;
}

}  // namespace
}  // namespace superstep::matrix
