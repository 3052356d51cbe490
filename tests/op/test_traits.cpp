// The facts that definitions state: all of them are there, and what the cases compute bears them out.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "superstep/base/text.h"
#include "superstep/op/batch/rules.h"
#include "superstep/op/core/batch_axis.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/strided.h"
#include "tests/contains.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

// A case that is one node of its operator, and what it gives for other inputs.
class OneNode {
 public:
  explicit OneNode(const Case& item) : built_(build(item.function, item.inputs)) {
    whole_ = built_.graph.node_count() == 1 && node().op == item.op;
    if (whole_) original_ = run(built_.inputs);
  }

  bool is_one() const { return whole_; }
  const graph::Graph& graph() const { return built_.graph; }
  const Node& node() const { return built_.graph.nodes()[0]; }
  const Definition& definition() const { return get(node().op); }
  const std::vector<Tensor>& inputs() const { return built_.inputs; }
  const std::vector<Tensor>& original() const { return original_; }

  // The input of the graph that the node reads at this place, or none.
  std::optional<std::size_t> graph_input(std::size_t place) const {
    if (place >= node().inputs.size() || !node().inputs[place].valid()) return std::nullopt;
    const auto& all = built_.graph.inputs();
    const auto found = std::ranges::find(all, node().inputs[place]);
    if (found == all.end()) return std::nullopt;
    return static_cast<std::size_t>(found - all.begin());
  }

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const {
    return evaluate(built_.graph, inputs).outputs;
  }

  // The result that is output `place` of the node, if the case shows it.
  std::optional<std::size_t> result(std::size_t place) const {
    const auto& all = built_.graph.outputs();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].value == node().outputs[place]) return i;
    return std::nullopt;
  }

 private:
  Built built_;
  bool whole_ = false;
  std::vector<Tensor> original_;
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

double other_value(double value) { return value * 1.25 + 0.375; }

// The index along `axis` of element i of a dense tensor.
std::int64_t index_along(const Shape& shape, int axis, std::int64_t i) {
  return i / shape.row_major_strides()[static_cast<std::size_t>(axis)] % shape[axis];
}

Tensor with_other_sample(const Tensor& tensor, int axis, std::int64_t sample) {
  Tensor result = tensor.clone();
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    if (index_along(tensor.shape(), axis, i) == sample) result.set(i, other_value(tensor.at(i)));
  return result;
}

// ---- where the samples are

struct Placed {
  std::size_t input;  // of the node
  int axis;
};
using Placing = std::vector<Placed>;

// Samples along every axis of every input alone, and of the first two or all inputs together.
std::vector<Placing> placings(const OneNode& one) {
  std::vector<Placing> result;
  const auto extent = [&](const Placed& at) {
    const Shape& shape = one.graph().type(one.node().inputs[at.input]).shape;
    return at.axis < shape.rank() ? shape[at.axis] : 0;
  };
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < one.node().inputs.size(); ++i)
    if (one.graph_input(i)) places.push_back(i);
  for (const std::size_t place : places)
    for (int axis = 0; axis < 4; ++axis)
      if (extent({place, axis}) > 1) result.push_back({{place, axis}});
  for (int a = 0; a < 3; ++a)
    for (int b = 0; places.size() > 1 && b < 3; ++b)
      if (const Placing pair{{places[0], a}, {places[1], b}};
          extent(pair[0]) > 1 && extent(pair[0]) == extent(pair[1]))
        result.push_back(pair);
  for (int axis = 0; places.size() > 2 && axis < 2; ++axis) {
    Placing all;
    for (const std::size_t place : places)
      if (extent({place, axis}) == extent({places[0], axis})) all.push_back({place, axis});
    if (extent(all[0]) > 1) result.push_back(all);
  }
  return result;
}

// The axes along which the elements of an input differ.
BatchAxis constant_input(const Tensor& tensor) {
  BatchAxis result = same_everywhere();
  const auto strides = tensor.shape().row_major_strides();
  for (int axis = 0; axis < tensor.shape().rank(); ++axis)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      if (index_along(tensor.shape(), axis, i) > 0 &&
          tensor.at(i) != tensor.at(i - strides[static_cast<std::size_t>(axis)]))
        result.varies |= std::uint64_t{1} << axis;
  return result;
}

BatchSite site_of(const OneNode& one, const Placing& placing, std::size_t output) {
  BatchSite site{one.graph(), one.node(), {}, false, output};
  for (std::size_t i = 0; i < one.node().inputs.size(); ++i)
    if (const auto input = one.graph_input(i))
      site.inputs.push_back(constant_input(one.inputs()[*input]));
    else if (one.node().inputs[i].valid())
      site.inputs.push_back(constant_input(one.graph().value(one.node().inputs[i]).data));
    else
      site.inputs.push_back(same_everywhere());
  for (const Placed& at : placing) site.inputs[at.input] = along(at.axis);
  return site;
}

std::vector<Tensor> with_other_samples(const OneNode& one, const Placing& placing,
                                       const std::set<std::int64_t>& samples) {
  std::vector<Tensor> inputs = one.inputs();
  for (const std::int64_t sample : samples)
    for (const Placed& at : placing) {
      Tensor& input = inputs[*one.graph_input(at.input)];
      input = with_other_sample(input, at.axis, sample);
    }
  return inputs;
}

// Only the slices of this sample may differ.
bool only_its_own_changed(const Tensor& before, const Tensor& after, const BatchAxis& claim,
                          std::int64_t sample) {
  for (std::int64_t i = 0; i < before.element_count(); ++i) {
    const bool own = claim.kind == BatchKind::per_sample &&
                     index_along(before.shape(), claim.axis, i) / claim.rows == sample;
    if (!own && !same(before.at(i), after.at(i))) return false;
  }
  return true;
}

// A sum of something of each sample: what one contributes does not depend on another.
bool contributions_are_apart(const OneNode& one, const Placing& placing, std::size_t result) {
  const Tensor none = one.original()[result], first = one.run(with_other_samples(one, placing, {0}))[result],
               second = one.run(with_other_samples(one, placing, {1}))[result],
               both = one.run(with_other_samples(one, placing, {0, 1}))[result];
  for (std::int64_t i = 0; i < none.element_count(); ++i) {
    const double alone = first.at(i) - none.at(i), after = both.at(i) - second.at(i);
    if (!(std::abs(alone - after) <= 1e-9 * std::max(1.0, std::abs(both.at(i))))) return false;
  }
  return true;
}

// Is there such an axis, with as many slices as the samples need?
bool has_axis_of(const OneNode& one, const Placing& placing, const BatchAxis& claim, const Shape& result) {
  const Shape& input = one.graph().type(one.node().inputs[placing[0].input]).shape;
  return claim.axis >= 0 && claim.axis < result.rank() &&
         result[claim.axis] == input[placing[0].axis] * claim.rows;
}

bool claim_holds(const OneNode& one, const Placing& placing, const BatchAxis& claim, std::size_t result) {
  if (claim.kind == BatchKind::per_sample &&
      !has_axis_of(one, placing, claim, one.original()[result].shape()))
    return false;
  if (claim.kind == BatchKind::reduced) return contributions_are_apart(one, placing, result);
  for (const std::int64_t sample : {std::int64_t{0}, std::int64_t{1}}) {
    const Tensor after = one.run(with_other_samples(one, placing, {sample}))[result];
    if (!only_its_own_changed(one.original()[result], after, claim, sample)) return false;
  }
  return true;
}

struct Judged {
  bool asked = false;  // the case has inputs that samples could be in
  int held = 0;
  std::vector<std::string> broken;
};

// Everything that a rule says about a case, but for "mixed", which promises nothing.
Judged judge(const Case& item, BatchAxis (*rule)(const BatchSite&)) {
  Judged judged;
  const OneNode one(item);
  if (!one.is_one()) return judged;
  for (const Placing& placing : placings(one)) {
    judged.asked = true;
    for (std::size_t output = 0; output < one.node().outputs.size(); ++output) {
      const auto result = one.result(output);
      if (!result) continue;
      const BatchAxis claim = rule(site_of(one, placing, output));
      if (claim.kind == BatchKind::mixed) continue;
      if (claim_holds(one, placing, claim, *result))
        ++judged.held;
      else
        judged.broken.push_back(item.op + " " + item.name + ": input " + std::to_string(placing[0].input) +
                                " along axis " + std::to_string(placing[0].axis) + ", of " +
                                std::to_string(placing.size()) + " inputs");
    }
  }
  return judged;
}

// The first case of this operator that is one node.
Case case_of(std::string_view op, int least_rank) {
  for (const Case& item : all_cases())
    if (item.op == op && item.inputs[0].shape().rank() >= least_rank && OneNode(item).is_one()) return item;
  throw Error(ErrorCode::not_found, "no such case", std::string(op));
}

bool is_among(double value, const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors)
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      if (same(tensor.at(i), value)) return true;
  return false;
}

// Do only those elements of the result change that a changed element of the input is broadcast to?
bool stays_in_place(const OneNode& one, std::size_t place, std::int64_t element) {
  std::vector<Tensor> inputs = one.inputs();
  Tensor& input = inputs[*one.graph_input(place)];
  const Tensor before = one.original()[0];
  const auto strides = broadcast_strides(input.shape(), before.shape());
  input = input.clone();
  input.set(element, other_value(input.at(element)));
  const Tensor after = one.run(inputs)[0];
  bool stays = true;
  for_each_strided(before.shape(), strides, 0, [&](std::int64_t i, std::int64_t offset) {
    if (offset != element && !same(before.at(i), after.at(i))) stays = false;
  });
  return stays;
}

}  // namespace

TEST(Traits, EveryOperatorStatesWhatItMust) {
  std::string missing;
  for (const Definition& definition : all())
    for (const std::string& fact : missing_facts(definition))
      missing += std::string(definition.name) + " lacks " + fact + "\n";
  EXPECT_EQ(missing, "");
}

TEST(Traits, WhatIsMissingIsListed) {
  const std::vector<std::string> missing = missing_facts(Definition{.name = "Fresh"});
  std::string text;
  for (const std::string& fact : missing) text += fact + "\n";
  for (const char* fact : {"infer:", "evaluate:", "traits.elements:", "traits.work:"})
    EXPECT_TRUE(contains(text, fact)) << text;
  EXPECT_EQ(missing.size(), 4U) << text;
}

TEST(Traits, FactsThatContradictEachOtherAreListed) {
  const Definition& add = get("Add");
  EXPECT_TRUE(missing_facts(add).empty());
  const auto with = [&](auto change) {
    Definition definition = add;
    change(definition);
    return missing_facts(definition);
  };
  EXPECT_FALSE(with([](Definition& d) { d.traits.batch = nullptr; }).empty());
  EXPECT_FALSE(with([](Definition& d) { d.traits.constants = Variation::anywhere; }).empty());
  EXPECT_FALSE(with([](Definition& d) { d.traits.work = WorkKind::reduction; }).empty());
  EXPECT_FALSE(with([](Definition& d) { d.max_outputs = 2; }).empty());
  EXPECT_FALSE(with([](Definition& d) { d.traits.product = true; }).empty());
  EXPECT_FALSE(with([](Definition& d) { d.jvp = nullptr; }).empty());
  EXPECT_FALSE(with([](Definition& d) { d.since_opset = 0; }).empty());
  EXPECT_FALSE(with([](Definition& d) { d.has_effects = true; }).empty());
}

TEST(Traits, AnAddedOperatorIsKnownWhileItLives) {
  Definition definition = get("Add");
  definition.name = "Fresh";
  EXPECT_EQ(find("Fresh"), nullptr);
  {
    const AddedOperator added(definition);
    ASSERT_NE(find("Fresh"), nullptr);
    EXPECT_TRUE(traits_of("Fresh").elementwise);
    EXPECT_THROW(AddedOperator{definition}, Error);
  }
  EXPECT_EQ(find("Fresh"), nullptr);
  EXPECT_FALSE(traits_of("Fresh").elementwise);
  definition.traits.elements = Elements::unstated;
  EXPECT_THROW(AddedOperator{definition}, Error);
}

// Attributes that graphs of ours have beyond ONNX's: they are taken off where a file is written.
TEST(Traits, AttributesThatTheCasesHaveAreStated) {
  const std::set<std::string, std::less<>> ours = {"over_parts", "products"};
  std::set<std::string> missing;
  for (const Case& item : all_cases())
    for (const Built built = build(item.function, item.inputs); const Node& node : built.graph.nodes()) {
      const Definition& definition = get(node.op);
      const std::vector<std::string> known = superstep::split(definition.traits.attributes, ' ');
      if (definition.since_opset == 0 || !definition.traits.domain.empty()) continue;
      for (const auto& [name, value] : node.attributes)
        if (!ours.contains(name) && !name.starts_with("superstep.") &&
            std::ranges::find(known, name) == known.end())
          missing.insert(node.op + ": " + name);
    }
  EXPECT_EQ(missing, std::set<std::string>());
}

TEST(Traits, SamplesAreWhereTheRulesSay) {
  std::map<std::string, int> held;
  for (const Case& item : all_cases()) {
    const auto rule = get(item.op).traits.batch;
    if (!rule) continue;
    const Judged judged = judge(item, rule);
    if (judged.asked) held[item.op] += judged.held;
    for (const std::string& broken : judged.broken) ADD_FAILURE() << broken;
  }
  // Their cases have one sample, or samples in inputs of integers; moments are of the whole batch.
  const std::set<std::string> not_shown = {"DepthToSpace",
                                           "DequantizeLinear",
                                           "GatherElements",
                                           "NegativeLogLikelihoodLoss",
                                           "Resize",
                                           "ScatterElements",
                                           "ScatterND",
                                           "SoftmaxCrossEntropyLoss",
                                           "SpaceToDepth",
                                           "Upsample",
                                           "superstep.ChannelMoments",
                                           "superstep.GatherRows",
                                           "superstep.ResizeGradient",
                                           "superstep.SegmentSum",
                                           "superstep.SparseProduct"};
  for (const auto& [op, count] : held)
    EXPECT_EQ(count == 0, not_shown.contains(op)) << op << ": whether a case shows its rule at work";
}

TEST(Traits, WrongRulesAreNoticed) {
  EXPECT_FALSE(judge(case_of("Softmax", 2), batch::elementwise).broken.empty());
  EXPECT_FALSE(judge(case_of("CumSum", 2), batch::same_extent).broken.empty());
  EXPECT_FALSE(judge(case_of("Transpose", 2), batch::view).broken.empty());
  EXPECT_FALSE(judge(case_of("ReduceMax", 2), batch::mean).broken.empty());
}

TEST(Traits, ElementwiseOperatorsKeepElementsInPlace) {
  int checked = 0;
  for (const Case& item : all_cases()) {
    if (!get(item.op).traits.elementwise) continue;
    const OneNode one(item);
    if (!one.is_one()) continue;
    for (std::size_t place = 0; place < one.node().inputs.size(); ++place) {
      const auto input = one.graph_input(place);
      if (!input || one.inputs()[*input].element_count() == 0) continue;
      for (const std::int64_t element : {std::int64_t{0}, one.inputs()[*input].element_count() - 1})
        EXPECT_TRUE(stays_in_place(one, place, element)) << item.op << " " << item.name;
      ++checked;
    }
  }
  EXPECT_GT(checked, 60);
  EXPECT_FALSE(stays_in_place(OneNode(case_of("Softmax", 2)), 0, 0));
}

TEST(Traits, ViewsAndMovesGiveTheElementsThatTheyRead) {
  std::set<std::string> shown;
  for (const Case& item : all_cases()) {
    const Traits& traits = get(item.op).traits;
    if (traits.view == View::none && !traits.moves_bytes) continue;
    const OneNode one(item);
    if (!one.is_one() || one.inputs().empty()) continue;
    const Tensor& result = one.original()[0];
    for (std::int64_t i = 0; i < result.element_count(); ++i) {
      EXPECT_TRUE(is_among(result.at(i), one.inputs())) << item.op << " " << item.name;
      if (traits.view == View::same || traits.view == View::regroups) {
        EXPECT_TRUE(same(result.at(i), one.inputs()[0].at(i))) << item.op << " " << item.name;
      }
    }
    shown.insert(item.op);
  }
  EXPECT_EQ(shown.size(), 9U);
}

}  // namespace superstep::op::test
