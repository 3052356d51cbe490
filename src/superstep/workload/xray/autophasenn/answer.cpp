// One crystal as voxels that an optimiser may change, begun from what the network says of it.
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/xray/autophasenn/autophasenn.h"

namespace superstep::workload {
namespace {

using op::Var;

// Of a voxel that lies beside the support: above the threshold, below which the physics has no derivative.
constexpr double rim_amplitude = 0.2;
// What a sigmoid can still change.
constexpr double faintest = 0.02, fullest = 0.98;

// The largest of each voxel and its 26 neighbours.
Var dilated(Var x) {
  return op::max_pool(x, {.kernel_shape = {3, 3, 3}, .strides = {1, 1, 1}, .pads = {1, 1, 1, 1, 1, 1}})
      .values;
}

Var crystal_amplitude(Var start, Var change) {
  op::Builder& b = start.builder();
  const Var inside = op::less(b.scalar(ElementType::f32, least_amplitude), dilated(start));
  const Var raised = op::clip(op::max(start, b.scalar(ElementType::f32, rim_amplitude)), faintest, fullest);
  const Var amplitude = op::sigmoid(op::log(raised / (1.0 - raised)) + change);
  return op::where(inside, amplitude, b.scalar(ElementType::f32, 0));
}

}  // namespace

graph::Graph build_crystal_answer(const Options& model) {
  const std::int64_t side = model.integer("size", 16, 256), half = side / 2;
  const Shape crystal{1, 1, half, half, half};
  graph::Graph graph("autophasenn.answer");
  op::Builder b(graph);
  b.input("diff", ElementType::f32, {1, 1, side, side, side});
  const Var amplitude = b.input("amp_start", ElementType::f32, crystal);
  const Var phase = b.input("phase_start", ElementType::f32, crystal);
  const auto change = [&](const char* name) { return b.state(name, Tensor(ElementType::f32, crystal)); };
  b.output("amp", crystal_amplitude(amplitude, change("answer.amplitude")));
  b.output("phase", phase + change("answer.phase"));
  return graph;
}

}  // namespace superstep::workload
