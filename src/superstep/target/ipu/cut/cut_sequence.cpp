// Cuts of operators over sequences: recurrent cells, attention, positions, sums of products by an equation.
#include <algorithm>
#include <map>

#include "superstep/op/product/einsum.h"
#include "superstep/target/ipu/cut/cut_rules.h"

namespace superstep::target::ipu {
namespace {

using Places = std::vector<std::int64_t>;

// --- recurrent cells ---------------------------------------------------------------------------------------

// The two directions as two cells of one. Weights and states have a direction an element of axis 0 (states:
// of axis 1 with layout 1), Y has it beside its steps.
void add_directions(Cuts& cuts, const Operation& op, bool batch_first) {
  if (op.attributes->text("direction", "forward") != "bidirectional" || op.attributes->has("activations"))
    return;
  const int state = batch_first ? 1 : 0, y = batch_first ? 2 : 1;
  if (!add_cut(cuts, op, 2, {-1, 0, 0, 0, -1, state, state, 0}, {y, state, state})) return;
  cuts.adapt = [](const Operation&, const Cuts& all, const Part& part, PartShape& shape) {
    const bsp::Interval direction = part.range[all.axes.size() - 1];
    if (direction.size() == 2) return;
    shape.attributes.set("direction", std::string(direction.begin == 0 ? "forward" : "reverse"));
    shape.place = {direction.begin};
  };
}

// x [T, N, I], lengths [N], initial states [D, N, H]; results [T, D, N, H] and [D, N, H]. With layout 1 N is
// the first axis of all of them.
Cuts recurrent(const Operation& op) {
  Cuts cuts;
  const bool batch_first = op.attributes->integer("layout", 0) != 0;
  const int axis = batch_first ? 0 : 1, y = batch_first ? 0 : 2;
  add_cut(cuts, op, op.input(0)[axis], {axis, -1, -1, -1, 0, axis, axis, -1}, {y, axis, axis});
  add_directions(cuts, op, batch_first);
  return cuts;
}

// Inputs X W R B h c Y dY dY_h dY_c; results dX dW dR dB dh dc. Samples make partial sums of the weights'.
Cuts lstm_gradient(const Operation& op) {
  Cuts cuts;
  const bool batch_first = op.attributes->integer("layout", 0) != 0;
  const int n = batch_first ? 0 : 1, y = batch_first ? 0 : 2;
  add_summed_cut(cuts, op, op.input(0)[n], {n, -1, -1, -1, n, n, y, y, n, n}, {n, -1, -1, -1, n, n});
  return cuts;
}

// --- attention ---------------------------------------------------------------------------------------------

// An operand [N, heads, length, size], or [N, length, heads x size]: where its heads and its length are.
CutOperand heads_of(const Shape& shape, std::int64_t heads, std::int64_t units) {
  if (shape.rank() == 4) return {1, heads / units};
  return {2, shape[2] / units};
}
int length_of(const Shape& shape) { return shape.rank() == 4 ? 2 : 1; }

std::int64_t head_count(const Operation& op, std::size_t input, const char* attribute) {
  return op.input(input).rank() == 4 ? op.input(input)[1] : op.attributes->integer(attribute, 1);
}

// The axis of a mask that broadcasts to [N, heads, queries, keys], -1 where it has one element there.
int mask_axis(const Shape& mask, int axis) {
  const int place = axis - (4 - mask.rank());
  return place >= 0 && mask[place] > 1 ? place : -1;
}

// Key heads with the query heads that share them.
void add_heads(Cuts& cuts, const Operation& op) {
  const std::int64_t keys = head_count(op, 1, "kv_num_heads"), queries = head_count(op, 0, "q_num_heads");
  if (keys < 2) return;
  Cut cut = empty_cut(op, keys);
  cut.inputs[0] = heads_of(op.input(0), queries, keys);
  cut.inputs[1] = heads_of(op.input(1), keys, keys);
  cut.inputs[2] = heads_of(op.input(2), keys, keys);
  if (op.has(3) && mask_axis(op.input(3), 1) >= 0)
    cut.inputs[3] = {mask_axis(op.input(3), 1), queries / keys};
  for (std::size_t i = 4; i < 6; ++i)
    if (op.has(i)) cut.inputs[i].axis = 1;
  cut.outputs[0] = heads_of(op.output(), queries, keys);
  for (std::size_t i = 1; i < op.outputs.size(); ++i) cut.outputs[i] = {1, i == 3 ? queries / keys : 1};
  cuts.axes.push_back(std::move(cut));
}

// Queries, where what they may look at does not depend on their number.
void add_queries(Cuts& cuts, const Operation& op) {
  const graph::Attributes& a = *op.attributes;
  if (a.integer("is_causal", 0) != 0 || a.integer("left_window_size", -1) >= 0 ||
      a.integer("right_window_size", -1) >= 0)
    return;
  const int length = length_of(op.input(0));
  const int mask = op.has(3) ? mask_axis(op.input(3), 2) : -1;
  add_cut(cuts, op, op.input(0)[length], {length, -1, -1, mask}, {length_of(op.output()), -1, -1, 2});
}

Cuts attention(const Operation& op) {
  Cuts cuts;
  const int mask = op.has(3) ? mask_axis(op.input(3), 0) : -1;
  add_cut(cuts, op, op.input(0)[0], {0, 0, 0, mask, 0, 0, 0}, Places(op.outputs.size(), 0));
  add_heads(cuts, op);
  add_queries(cuts, op);
  cuts.adapt = [](const Operation& operation, const Cuts&, const Part&, PartShape& shape) {
    for (const auto& [input, name] : {std::pair{0u, "q_num_heads"}, std::pair{1u, "kv_num_heads"}}) {
      if (operation.input(input).rank() == 4) continue;
      const std::int64_t heads = operation.attributes->integer(name, 1);
      shape.attributes.set(name, heads * (*shape.inputs[input])[2] / operation.input(input)[2]);
    }
  };
  return cuts;
}

// x [N, H, T, size] or [N, T, H x size], tables [positions, half] or [N, T, half], positions [N, T].
Cuts rotary(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  const Shape& x = op.input(0);
  const bool looked_up = op.has(3);
  const auto tables = [&](int axis) { return looked_up ? -1 : axis; };
  add_cut(cuts, op, x[0], {0, tables(0), tables(0), 0}, {0});
  const int length = length_of(x);
  add_cut(cuts, op, x[length], {length, tables(1), tables(1), 1}, {length});
  const std::int64_t heads = head_count(op, 0, "num_heads");
  if (heads < 2) return cuts;
  Cut cut = empty_cut(op, heads);
  if (x.rank() == 3) cut.attribute = "num_heads";
  cut.inputs[0] = cut.outputs[0] = heads_of(x, heads, heads);
  cuts.axes.push_back(std::move(cut));
  return cuts;
}

// Samples: every operand has them in front.
Cuts linear_attention(const Operation& op) {
  Cuts cuts;
  add_cut(cuts, op, op.input(0)[0], Places(op.inputs.size(), 0), Places(op.outputs.size(), 0));
  return cuts;
}

// x [N, C, T], weights [C, 1, taps], bias [C], past [N, C, taps - 1].
Cuts causal_convolution(const Operation& op) {
  Cuts cuts;
  cuts.even = true;
  add_cut(cuts, op, op.input(0)[0], {0, -1, -1, 0}, Places(op.outputs.size(), 0));
  add_cut(cuts, op, op.input(0)[1], {1, 0, 0, 1}, Places(op.outputs.size(), 1));
  return cuts;
}

// --- equations ---------------------------------------------------------------------------------------------

// Along every label that no operand has twice; one that the result does not have is summed over.
Cuts einsum(const Operation& op) {
  Cuts cuts;
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) shapes.push_back(op.input(i));
  const op::Equation equation = op::parse_equation(*op.attributes, shapes);
  std::map<char, std::int64_t> extents;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (int axis = 0; axis < shapes[i].rank(); ++axis) {
      std::int64_t& extent = extents[equation.operands[i][static_cast<std::size_t>(axis)]];
      extent = std::max(extent, shapes[i][axis]);
    }
  const auto place = [](const std::string& labels, char label) {
    const std::size_t found = labels.find(label);
    return found == std::string::npos ? -1 : static_cast<std::int64_t>(found);
  };
  const bool sums = op.inputs[0]->element != ElementType::boolean;
  for (const auto& [label, extent] : extents) {
    Places inputs;
    bool twice = false;
    for (const std::string& labels : equation.operands) {
      twice = twice || std::count(labels.begin(), labels.end(), label) > 1;
      inputs.push_back(place(labels, label));
    }
    const std::int64_t output = place(equation.result, label);
    if (twice) continue;
    if (output >= 0)
      add_cut(cuts, op, extent, inputs, {output});
    else if (sums)
      add_summed_cut(cuts, op, extent, inputs);
  }
  cuts.by_cost = true;
  return cuts;
}

}  // namespace

std::span<const CutRule> sequence_cut_rules() {
  static const CutRule rules[] = {{recurrent, {"LSTM", "GRU", "RNN"}, recurrent_cycles},
                                  {lstm_gradient, {"superstep.LSTMGradient"}, lstm_gradient_cycles},
                                  {attention, {"Attention"}},
                                  {rotary, {"RotaryEmbedding"}},
                                  {linear_attention, {"LinearAttention"}},
                                  {causal_convolution, {"CausalConvWithState"}},
                                  {einsum, {"Einsum"}}};
  return rules;
}

}  // namespace superstep::target::ipu
