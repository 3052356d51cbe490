// Recurrent layers as loops over their steps, and their derivatives. The usual LSTM has a loop of its own, in
// which products by all steps at once stand outside as far as they know their operands; other cells take the
// graphs of their steps (recurrent_loop.h).
#include <array>

#include "superstep/op/sequence/recurrent.h"
#include "superstep/op/sequence/recurrent_gradient.h"
#include "superstep/target/pjrt/stablehlo/directions.h"
#include "superstep/target/pjrt/stablehlo/recurrent_loop.h"

namespace superstep::target::stablehlo {
namespace {

using Values = std::vector<Value>;

// Inputs of LSTM, and of its gradient.
enum Input : std::size_t { x_in, w_in, r_in, b_in, lengths_in, h_in, c_in, peephole_in };
enum Gradient : std::size_t { g_x, g_w, g_r, g_b, g_h, g_c, g_y, g_dy, g_dh, g_dc };

using Sizes = RecurrentSizes;

// One direction of an LSTM in a program: gates are input, output, forget, cell, in the order of ONNX.
class Cell {
 public:
  Cell(Emitter& emit, const Sizes& sizes, ElementType element, bool reversed)
      : emit_(emit), s_(sizes), element_(element), reversed_(reversed) {}

  // a [.., K] times b [N, K] transposed, or b [K, N].
  Value product(const Value& a, const Value& b, bool transposed) const {
    const Shape result{a.shape()[0], b.shape()[transposed ? 0 : 1]};
    return emit_.dot(a, b, {{}, {}, {1}, {transposed ? 1 : 0}}, result, element_);
  }
  Value gate(const Value& gates, int number) const {
    return emit_.cut(gates, 1, number * s_.hidden, (number + 1) * s_.hidden);
  }
  // [rows, 4 H] after their functions.
  Value activated(const Value& before) const {
    const Values parts = {emit_.unary("logistic", emit_.cut(before, 1, 0, 3 * s_.hidden)),
                          emit_.unary("tanh", gate(before, 3))};
    return emit_.concatenate(parts, 1);
  }
  // What the inputs add to the gates of all steps: [T, B, 4 H].
  Value from_inputs(const Value& x, const Value& w, const Value& bias) const {
    const Value rows = emit_.reshape(x, {s_.steps * s_.batch, s_.inputs});
    Value gates = product(rows, w, true);
    if (bias.valid()) {
      const std::int64_t width = 4 * s_.hidden;
      const Value sum = emit_.add(emit_.cut(bias, 0, 0, width), emit_.cut(bias, 0, width, 2 * width));
      gates = emit_.add(gates, emit_.broadcast(sum, gates.shape(), {1}));
    }
    return emit_.reshape(gates, {s_.steps, s_.batch, 4 * s_.hidden});
  }

  // `i` is a step in the order of the loop; its place along the sequence.
  Value place(const Value& i) const { return place_of_step(emit_, i, s_.steps, reversed_); }
  Value at(const Value& all, const Value& t) const { return step_at(emit_, all, t); }
  Value put(const Value& all, const Value& value, const Value& t) const {
    return with_step(emit_, all, value, t);
  }
  Value room(std::int64_t width) const { return emit_.splat(element_, {s_.steps, s_.batch, width}, 0); }
  Values over_steps(Values state, const Emitter::Body& step) const {
    return count_steps(emit_, s_.steps, std::move(state), step);
  }
  // The states before each step, of those after each: the start first.
  Value before(const Value& after, const Value& start) const {
    return states_before(emit_, after, start, reversed_);
  }
  Value rows(const Value& all) const { return emit_.reshape(all, {s_.steps * s_.batch, all.shape()[2]}); }

 private:
  Emitter& emit_;
  const Sizes& s_;
  ElementType element_;
  bool reversed_;
};

Values lstm(const Site& s) {
  const Directions directions(s, x_in, r_in);
  const Sizes& sizes = directions.sizes();
  Emitter& emit = s.emit;
  Values ys, hs, cs;
  for (std::int64_t d = 0; d < sizes.directions; ++d) {
    const Cell cell(emit, sizes, s.in(0).element(), directions.is_reversed(d));
    const Value r = directions.matrix(r_in, d);
    const Value inputs = cell.from_inputs(directions.sequence(x_in), directions.matrix(w_in, d),
                                          s.has(b_in) ? directions.matrix(b_in, d) : Value());
    const Values end = cell.over_steps(
        {directions.state(h_in, d), directions.state(c_in, d), cell.room(sizes.hidden), inputs, r},
        [&](const Values& now) {
          const Value t = cell.place(now[0]);
          const Value gates =
              cell.activated(emit.add(cell.at(now[4], t), cell.product(now[1], now[5], true)));
          const Value c = emit.add(emit.multiply(cell.gate(gates, 2), now[2]),
                                   emit.multiply(cell.gate(gates, 0), cell.gate(gates, 3)));
          const Value h = emit.multiply(cell.gate(gates, 1), emit.unary("tanh", c));
          return Values{h, c, cell.put(now[3], h, t), now[4], now[5]};
        });
    hs.push_back(end[0]);
    cs.push_back(end[1]);
    ys.push_back(end[2]);
  }
  return {directions.stacked_outputs(ys), directions.stacked_states(hs), directions.stacked_states(cs)};
}

// The cells of all steps, whose gates are known: [T, B, H].
Value cells_of(Emitter& emit, const Cell& cell, const Sizes& sizes, const Value& gates, const Value& start) {
  const Values end = cell.over_steps({start, cell.room(sizes.hidden), gates}, [&](const Values& now) {
    const Value t = cell.place(now[0]), g = cell.at(now[3], t);
    const Value c =
        emit.add(emit.multiply(cell.gate(g, 2), now[1]), emit.multiply(cell.gate(g, 0), cell.gate(g, 3)));
    return Values{c, cell.put(now[2], c, t), now[3]};
  });
  return end[1];
}

// x (1 - x), the derivative of the logistic function by what it gives.
Value logistic_slope(Emitter& emit, const Value& x) {
  return emit.multiply(x, emit.subtract(emit.like(x, 1), x));
}
// 1 - x^2, of the hyperbolic tangent.
Value tanh_slope(Emitter& emit, const Value& x) {
  return emit.subtract(emit.like(x, 1), emit.multiply(x, x));
}

struct Step {
  Value gates_slope, h,
      c;  // derivatives by the gates before their functions, and by the states before the step
};

// One step backwards: `g` its gates, `c` and `before` its cells after and before it.
Step step_back(Emitter& emit, const Cell& cell, const std::array<Value, 3>& known, const Value& r,
               const Value& dh, const Value& dc_after) {
  const auto& [g, c, before] = known;
  const Value i = cell.gate(g, 0), o = cell.gate(g, 1), f = cell.gate(g, 2), z = cell.gate(g, 3);
  const Value squashed = emit.unary("tanh", c);
  const Value dc = emit.add(emit.multiply(emit.multiply(dh, o), tanh_slope(emit, squashed)), dc_after);
  const Values by_gate = {emit.multiply(emit.multiply(dc, z), logistic_slope(emit, i)),
                          emit.multiply(emit.multiply(dh, squashed), logistic_slope(emit, o)),
                          emit.multiply(emit.multiply(dc, before), logistic_slope(emit, f)),
                          emit.multiply(emit.multiply(dc, i), tanh_slope(emit, z))};
  const Value slope = emit.concatenate(by_gate, 1);
  return {slope, cell.product(slope, r, false), emit.multiply(dc, f)};
}

// a [N, P] transposed times b [N, Q].
Value outer(Emitter& emit, const Value& a, const Value& b) {
  return emit.dot(a, b, {{}, {}, {0}, {0}}, {a.shape()[1], b.shape()[1]}, a.element());
}

// Of one direction: by X [T, B, I], W, R, B and both states.
Values direction_gradient(const Site& s, const Directions& directions, std::int64_t d) {
  const Sizes& sizes = directions.sizes();
  Emitter& emit = s.emit;
  // Forwards and backwards through the same steps.
  const Cell cell(emit, sizes, s.in(0).element(), directions.is_reversed(d)),
      back(emit, sizes, s.in(0).element(), !directions.is_reversed(d));
  const Value x = directions.sequence(g_x), w = directions.matrix(g_w, d), r = directions.matrix(g_r, d);
  const Value h_before = cell.before(directions.outputs(g_y, d), directions.state(g_h, d));
  const Value inputs = cell.from_inputs(x, w, directions.matrix(g_b, d));
  const Value gates =
      emit.reshape(cell.activated(emit.add(cell.rows(inputs), cell.product(cell.rows(h_before), r, true))),
                   inputs.shape());
  const Value start = directions.state(g_c, d), cells = cells_of(emit, cell, sizes, gates, start);
  const Values end = back.over_steps(
      {directions.state(g_dh, d), directions.state(g_dc, d), back.room(4 * sizes.hidden), gates, cells,
       cell.before(cells, start), directions.outputs(g_dy, d), r},
      [&](const Values& now) {
        const Value t = back.place(now[0]);
        const Step step = step_back(emit, back, {back.at(now[4], t), back.at(now[5], t), back.at(now[6], t)},
                                    now[8], emit.add(now[1], back.at(now[7], t)), now[2]);
        return Values{step.h, step.c, back.put(now[3], step.gates_slope, t), now[4], now[5], now[6],
                      now[7], now[8]};
      });
  const Value slopes = cell.rows(end[2]);
  const Value by_bias = emit.reduce(slopes, {0}, Fold::sum);
  return {emit.reshape(cell.product(slopes, w, false), x.shape()),
          outer(emit, slopes, cell.rows(x)),
          outer(emit, slopes, cell.rows(h_before)),
          emit.concatenate(Values{by_bias, by_bias}, 0),
          end[0],
          end[1]};
}

Values lstm_gradient(const Site& s) {
  const Directions directions(s, g_x, g_r);
  std::vector<Values> found(6);  // by result, of each direction
  for (std::int64_t d = 0; d < directions.sizes().directions; ++d) {
    const Values of_direction = direction_gradient(s, directions, d);
    for (std::size_t i = 0; i < found.size(); ++i) found[i].push_back(of_direction[i]);
  }
  Value x = found[0][0];
  for (std::size_t d = 1; d < found[0].size(); ++d) x = s.emit.add(x, found[0][d]);
  if (directions.sizes().batch_first) x = s.emit.transpose(x, {1, 0, 2});
  return {x,
          directions.stacked(found[1], 0),
          directions.stacked(found[2], 0),
          directions.stacked(found[3], 0),
          directions.stacked_states(found[4]),
          directions.stacked_states(found[5])};
}

// Three gates and the functions of the definition; of the gradient nothing else is asked.
bool is_usual(const graph::Attributes& a) {
  return !a.has("activations") && a.number("clip", 0) == 0 && a.integer("input_forget", 0) == 0;
}

// Over more than a step, of anything.
bool is_loop(const graph::Graph& graph, const graph::Node& node) {
  const Sizes sizes =
      recurrent_sizes(node.attributes, graph.type(node.inputs[0]).shape, graph.type(node.inputs[2]).shape);
  return sizes.steps > 1 && sizes.batch > 0 && sizes.hidden > 0 && sizes.inputs > 0;
}

bool is_usual_loop(const graph::Graph& graph, const graph::Node& node) {
  return is_usual(node.attributes) && is_loop(graph, node);
}

// Sequences of one length, and no gate that looks at the cell, have a loop of their own.
Values any_lstm(const Site& s) {
  const bool usual = is_usual(s.attributes()) && !s.has(lengths_in) && !s.has(peephole_in);
  return usual ? lstm(s) : recurrent_in_a_loop(s, s.node.op);
}

// Beside the state: a third result.
bool has_cell(const op::Definition& cell) { return cell.max_outputs == 3; }

Values any_cell(const Site& s) { return recurrent_in_a_loop(s, s.node.op); }

}  // namespace

std::span<const Lowering> recurrent_lowerings() {
  static const std::vector<Lowering> table = [] {
    std::vector<Lowering> rows = {
        {op::lstm_gradient_operator, lstm_gradient, Inputs::widened, is_usual_loop},
        {op::recurrent_gradient_operator, recurrent_gradient_in_a_loop, Inputs::widened, is_loop}};
    for (const op::Definition& cell : op::recurrent_operators())
      rows.push_back({cell.name, has_cell(cell) ? any_lstm : any_cell, Inputs::widened, is_loop});
    return rows;
  }();
  return table;
}

}  // namespace superstep::target::stablehlo
