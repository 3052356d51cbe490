// Parts of convolutions that have some of the kernel's positions: together they are the whole.
#include <gtest/gtest.h>

#include <set>

#include "superstep/base/random.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/product/convolution.h"
#include "superstep/target/ipu/cut/part.h"
#include "tests/target/models.h"

namespace superstep::target::ipu {
namespace {

using Integers = std::vector<std::int64_t>;
using test::random_tensor;

struct Case {
  const char* op;
  std::vector<Shape> shapes;
  graph::Attributes attributes;
};

std::vector<Case> cases() {
  const auto with = [](std::vector<std::pair<const char*, Integers>> lists, std::int64_t group = 1) {
    graph::Attributes attributes{{"group", group}};
    for (auto& [name, list] : lists) attributes.set(name, list);
    return attributes;
  };
  return {
      {"Conv", {{2, 4, 5, 6}, {6, 4, 3, 3}, {6}}, with({{"pads", {1, 1, 1, 1}}})},
      {"Conv", {{1, 3, 9, 8}, {5, 3, 4, 3}, {5}}, with({{"strides", {2, 3}}, {"pads", {2, 0, 1, 2}}})},
      {"Conv", {{1, 2, 11}, {4, 2, 5}}, with({{"dilations", {2}}, {"pads", {4, 4}}})},
      // Most of the kernel lies in the padding wherever it is.
      {"Conv", {{1, 2, 1, 2}, {3, 2, 3, 5}, {3}}, with({{"pads", {1, 2, 1, 2}}})},
      {"Conv", {{1, 6, 4, 4}, {6, 1, 3, 3}}, with({{"pads", {1, 1, 1, 1}}}, 6)},
      {"ConvTranspose", {{1, 4, 4, 3}, {4, 3, 2, 2}, {3}}, with({{"strides", {2, 2}}})},
      {"ConvTranspose", {{2, 3, 4, 5}, {3, 4, 3, 3}}, with({{"pads", {1, 1, 1, 1}}})},
      {"ConvTranspose",
       {{1, 2, 3, 4}, {2, 3, 3, 5}, {3}},
       with({{"strides", {3, 2}}, {"pads", {1, 0, 0, 2}}, {"output_padding", {2, 1}}})},
      {"superstep.ConvWeightGradient",
       {{2, 3, 6, 5}, {2, 4, 6, 5}},
       with({{"kernel_shape", {3, 3}}, {"pads", {1, 1, 1, 1}}})},
      {"superstep.ConvWeightGradient",
       {{1, 2, 8, 7}, {1, 3, 4, 2}},
       with({{"kernel_shape", {3, 2}}, {"strides", {2, 4}}, {"pads", {0, 0, 1, 0}}})},
      // In three dimensions and in one, dilated, in groups.
      {"Conv",
       {{2, 4, 4, 5, 3}, {4, 2, 3, 2, 3}, {4}},
       with({{"strides", {1, 2, 1}}, {"dilations", {1, 2, 1}}, {"pads", {1, 2, 1, 1, 0, 1}}}, 2)},
      {"ConvTranspose", {{1, 4, 6}, {4, 1, 5}, {2}}, with({{"strides", {3}}, {"dilations", {2}}}, 2)},
      {"ConvTranspose",
       {{1, 2, 2, 3, 2}, {2, 3, 3, 2, 2}, {3}},
       with({{"strides", {2, 1, 2}}, {"dilations", {1, 3, 1}}, {"pads", {1, 0, 0, 0, 1, 0}}})},
      {"superstep.ConvWeightGradient",
       {{2, 4, 9}, {2, 4, 5}},
       with({{"kernel_shape", {5}}, {"strides", {2}}, {"dilations", {2}}, {"pads", {4, 4}}}, 2)},
      {"superstep.ConvWeightGradient",
       {{1, 2, 4, 4, 3}, {1, 3, 4, 2, 4}},
       with({{"kernel_shape", {3, 3, 2}}, {"strides", {1, 2, 1}}, {"pads", {1, 1, 1, 1, 1, 1}}})},
  };
}

std::int64_t place_in(const Shape& whole, const Shape& part, const std::vector<AxisRange>& ranges,
                      std::int64_t i) {
  std::int64_t place = 0, scale = 1;
  for (int axis = whole.rank(); axis-- > 0;) {
    std::int64_t at = i % part[axis];
    i /= part[axis];
    for (const AxisRange& range : ranges)
      if (range.axis == axis) at += range.range.begin;
    place += at * scale;
    scale *= whole[axis];
  }
  return place;
}

// At most three parts along every cut, of random extents.
Partition random_partition(const Operation& operation, RandomStream& random) {
  Partition partition;
  partition.cuts = cuts_of(operation);
  for (const Cut& cut : partition.cuts.axes) {
    std::set<std::int64_t> bounds{0, cut.units};
    for (std::uint64_t more = random.below(3); more-- > 0;)
      bounds.insert(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(cut.units))));
    partition.bounds.emplace_back(bounds.begin(), bounds.end());
  }
  return partition;
}

// Every part evaluated on its slices and added to where it stands.
std::vector<double> sum_of_parts(const Operation& operation, const std::vector<Tensor>& inputs,
                                 const Partition& partition) {
  const op::Definition& definition = op::get(operation.node->op);
  std::vector<double> sum(static_cast<std::size_t>(operation.output().element_count()));
  for (std::int64_t number = 0; number < partition.count(); ++number) {
    const Part part = part_of(partition, number);
    const PartShape shape = part_shape(definition, operation, partition, part);
    EXPECT_TRUE(agrees(definition, operation, shape));
    std::vector<Tensor> slices;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      slices.emplace_back(inputs[i].type(), shape.inputs[i].value_or(Shape{0}));
      const auto ranges = operand_ranges(partition.cuts, part, true, i);
      for (std::int64_t k = 0; shape.inputs[i] && k < slices[i].element_count(); ++k)
        slices[i].set(k, inputs[i].at(place_in(inputs[i].shape(), *shape.inputs[i], ranges, k)));
    }
    std::vector<const Tensor*> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) given.push_back(shape.inputs[i] ? &slices[i] : nullptr);
    Tensor result(inputs[0].type(), *shape.outputs[0]);
    const op::EvaluateContext context{shape.attributes, given, {&result}};
    shape.evaluate ? shape.evaluate(context) : definition.evaluate(context);
    const auto ranges = operand_ranges(partition.cuts, part, false, 0);
    for (std::int64_t k = 0; k < result.element_count(); ++k)
      sum[static_cast<std::size_t>(place_in(operation.output(), result.shape(), ranges, k))] += result.at(k);
  }
  return sum;
}

TEST(KernelParts, TogetherAreTheWhole) {
  RandomStream random(7);
  int cut_kernels = 0;
  for (const Case& one : cases()) {
    graph::Graph graph("case");
    op::Builder b(graph);
    std::vector<op::Var> vars;
    std::vector<Tensor> inputs;
    for (const Shape& shape : one.shapes) {
      vars.push_back(b.input("x" + std::to_string(vars.size()), ElementType::f64, shape));
      inputs.push_back(random_tensor(ElementType::f64, shape, vars.size()));
    }
    const op::Var y = b.node(one.op, vars, one.attributes, 1)[0];
    b.output("y", y);
    const graph::Node& node = graph.nodes()[0];
    const Operation operation = operation_of(graph, node);
    Tensor whole(ElementType::f64, y.shape());
    std::vector<const Tensor*> given;
    for (const Tensor& input : inputs) given.push_back(&input);
    op::get(node.op).evaluate({node.attributes, given, {&whole}});
    for (int draw = 0; draw < 30; ++draw) {
      const Partition partition = random_partition(operation, random);
      const std::vector<double> sum = sum_of_parts(operation, inputs, partition);
      for (std::size_t i = 0; i < sum.size(); ++i)
        ASSERT_NEAR(sum[i], whole.at(static_cast<std::int64_t>(i)), 1e-9) << one.op << " draw " << draw;
      for (std::size_t c = 0; c < partition.bounds.size(); ++c)
        cut_kernels += partition.cuts.axes[c].taps >= 0 && partition.bounds[c].size() > 2;
    }
  }
  EXPECT_GT(cut_kernels, 200);
}

}  // namespace
}  // namespace superstep::target::ipu
