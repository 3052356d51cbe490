#include "superstep/op/core/composite.h"

#include <algorithm>
#include <deque>

namespace superstep::op {
namespace {

struct Known {
  Decomposition decompose;
  Attributes attributes;
  std::vector<ValueType> inputs, outputs;
  double flops;
};

// Chosen: networks repeat a few layers, of which one has ten operators at most.
constexpr std::size_t most_known = 32;

double count_flops(Decomposition decompose, const Attributes& attributes, std::span<const ValueType> inputs,
                   std::span<const ValueType> outputs) {
  Graph graph("cost");
  Builder builder(graph);
  const auto stand_ins = [&](std::span<const ValueType> types) {
    std::vector<Var> vars;
    for (const ValueType& type : types) vars.push_back(builder.input("x", type.element, type.shape));
    return vars;
  };
  try {
    const std::vector<Var> given = stand_ins(inputs), results = stand_ins(outputs);
    decompose({builder, attributes, given, results});
    return cost(graph).flops;
  } catch (const Error&) {
    return static_cast<double>(outputs[0].shape.element_count());
  }
}

}  // namespace

// The decomposition is a graph, which takes some fifty microseconds to make: the last ones are remembered.
double flops_through(Decomposition decompose, const Attributes& attributes, std::span<const ValueType> inputs,
                     std::span<const ValueType> outputs) {
  thread_local std::deque<Known> known;  // the newest first
  for (const Known& each : known)
    if (each.decompose == decompose && std::ranges::equal(each.inputs, inputs) &&
        std::ranges::equal(each.outputs, outputs) && each.attributes == attributes)
      return each.flops;
  const double flops = count_flops(decompose, attributes, inputs, outputs);
  known.push_front(
      {decompose, attributes, {inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, flops});
  if (known.size() > most_known) known.pop_back();
  return flops;
}

}  // namespace superstep::op
