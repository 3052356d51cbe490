#include "tests/matrix/draw.h"

namespace superstep::matrix {
namespace {

struct Cell {
  std::int64_t steps, batch, inputs, hidden, directions;
  bool batch_first;

  Shape sequence() const { return batch_first ? Shape{batch, steps, inputs} : Shape{steps, batch, inputs}; }
  Shape state() const {
    return batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  }
  Shape results() const {
    return batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden};
  }
};
Cell cell(Draw& d) {
  return {d.number(1, 3), d.number(1, 9), d.number(1, 4), d.number(1, 4), d.number(1, 2), d.coin()};
}
op::Attributes attributes_of(Draw& d, const Cell& c) {
  const std::string direction = c.directions == 2 ? "bidirectional" : d.coin() ? "forward" : "reverse";
  return {{"direction", direction}, {"layout", std::int64_t{c.batch_first}}, {"hidden_size", c.hidden}};
}

Case recurrent(Draw& d, const char* op) {
  const std::string name(op);
  const Cell c = cell(d);
  const std::int64_t gates = name == "LSTM" ? 4 : name == "GRU" ? 3 : 1, rows = gates * c.hidden;
  std::vector<Tensor> inputs{d.normal(c.sequence()), d.normal({c.directions, rows, c.inputs}, 0.5),
                             d.normal({c.directions, rows, c.hidden}, 0.5)};
  inputs.push_back(d.coin() ? d.normal({c.directions, 2 * rows}, 0.5) : left_out());
  inputs.push_back(d.coin() ? d.whole({c.batch}, 1, c.steps, ElementType::i32) : left_out());
  inputs.push_back(d.coin() ? d.normal(c.state()) : left_out());
  if (name == "LSTM") inputs.push_back(d.coin() ? d.normal(c.state()) : left_out());
  return node_case(op, inputs, attributes_of(d, c), name == "LSTM" ? 3 : 2);
}

// The derivative of any cell, with all that it may be given.
Case recurrent_gradient(Draw& d, const char* op) {
  const std::string name = d.one_of<const char*>({"RNN", "GRU", "LSTM"});
  const Cell c = cell(d);
  const bool lstm = name == "LSTM", lengths = d.coin();
  const std::int64_t rows = (lstm ? 4 : name == "GRU" ? 3 : 1) * c.hidden;
  std::vector<Tensor> inputs{d.normal(c.sequence()),
                             d.normal({c.directions, rows, c.inputs}, 0.5),
                             d.normal({c.directions, rows, c.hidden}, 0.5),
                             d.normal({c.directions, 2 * rows}, 0.5),
                             lengths ? d.whole({c.batch}, 1, c.steps, ElementType::i32) : left_out(),
                             d.normal(c.state()),
                             lstm ? d.normal(c.state()) : left_out(),
                             lstm ? d.normal({c.directions, 3 * c.hidden}, 0.5) : left_out(),
                             left_out(),
                             d.normal(c.results()),
                             d.coin() ? d.normal(c.state()) : left_out()};
  op::Attributes attributes = attributes_of(d, c);
  attributes.set("cell", name);
  if (d.coin()) attributes.set("clip", 0.8);
  return node_case(op, inputs, attributes, lstm ? 7 : 5, Smooth::no);
}

// The LSTM's own Y: the operator is the derivative there.
Case lstm_gradient(Draw& d, const char* op) {
  const Cell c = cell(d);
  const std::int64_t rows = 4 * c.hidden;
  Case result =
      node_case(op, {d.normal(c.sequence()), d.normal({c.directions, rows, c.inputs}, 0.5),
                     d.normal({c.directions, rows, c.hidden}, 0.5), d.normal({c.directions, 2 * rows}, 0.5),
                     d.normal(c.state()), d.normal(c.state()), d.normal(c.results()), d.normal(c.state())});
  const op::Attributes attributes = attributes_of(d, c);
  const bool last = d.coin();
  result.function = [=](op::Builder& b, std::span<const op::Var> x) {
    const op::Var forward[] = {x[0], x[1], x[2], x[3], op::Var(), x[4], x[5]};
    const op::Var y = b.node("LSTM", forward, attributes, 3)[0];
    const op::Var all[] = {x[0], x[1], x[2], x[3], x[4], x[5], y, x[6], last ? x[7] : op::Var()};
    return b.node("superstep.LSTMGradient", all, attributes, 6);
  };
  result.smooth = Smooth::no;
  return result;
}

Case attention(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 3), kv = d.number(1, 3), q = kv * d.number(1, 2), size = d.number(1, 4),
                     value = d.number(1, 4);
  const std::int64_t queries = d.number(1, 6), keys = d.number(1, 6);
  const bool flat = d.coin();
  const auto shape = [&](std::int64_t heads, std::int64_t length, std::int64_t width) {
    return flat ? Shape{n, length, heads * width} : Shape{n, heads, length, width};
  };
  std::vector<Tensor> inputs{d.normal(shape(q, queries, size)), d.normal(shape(kv, keys, size)),
                             d.normal(shape(kv, keys, value))};
  if (d.coin())
    inputs.push_back(
        d.normal(d.coin() ? Shape{queries, keys} : Shape{d.coin() ? n : 1, d.coin() ? q : 1, queries, keys}));
  op::Attributes attributes{{"q_num_heads", q}, {"kv_num_heads", kv}, {"is_causal", d.number(0, 1)}};
  return node_case(op, inputs, attributes);
}

Case rotary(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 3), heads = d.number(1, 6), length = d.number(2, 9),
                     half = d.number(1, 3);
  const bool flat = d.coin(), looked_up = d.coin();
  const Shape x = flat ? Shape{n, length, heads * 2 * half} : Shape{n, heads, length, 2 * half};
  const Shape table = looked_up ? Shape{7, half} : Shape{n, length, half};
  std::vector<Tensor> inputs{d.normal(x), d.normal(table), d.normal(table)};
  if (looked_up) inputs.push_back(d.whole({n, length}, 0, 6));
  return node_case(op, inputs, {{"num_heads", heads}, {"interleaved", d.number(0, 1)}});
}

Case linear_attention(Draw& d, const char* op) {
  const std::int64_t n = d.number(1, 5), t = d.number(1, 4), h = d.number(1, 2), key = d.number(1, 3),
                     value = d.number(1, 3);
  return node_case(op,
                   {d.normal({n, t, h * key}), d.normal({n, t, h * key}, 0.5), d.normal({n, t, h * value}),
                    left_out(), d.uniform({n, t, h}, -1, 0), d.uniform({n, t, h}, 0, 1)},
                   {{"q_num_heads", h}, {"kv_num_heads", h}}, 2);
}

Case loss(Draw& d, const char* op) {
  const std::int64_t classes = d.number(2, 6);
  Extents labels = d.extents(d.number(1, 2), 1, 9), scores = labels;
  scores.insert(scores.begin() + 1, classes);
  std::vector<Tensor> inputs{d.normal(Shape(scores)), d.whole(Shape(labels), 0, classes - 1)};
  if (d.number(0, 2) == 0) inputs.push_back(d.uniform({classes}, 0.5, 2));
  return node_case(op, inputs, {{"reduction", std::string(d.one_of<const char*>({"mean", "sum", "none"}))}},
                   std::string(op) == "SoftmaxCrossEntropyLoss" && d.coin() ? 2 : 1);
}

Case descent(Draw& d, const char* op) {
  const Shape x = d.shape();
  std::vector<Tensor> inputs{d.normal(x), d.normal(x), d.uniform({}, 0.01, 0.1)};
  return node_case(op, inputs, {}, 1, Smooth::no);
}
Case moments(Draw& d, const char* op) {
  const Shape x = d.shape();
  return node_case(op,
                   {d.normal(x), d.normal(x), d.normal(x), d.uniform(x, 0.5, 2),
                    op::test::i64({}, {d.number(1, 9)}), d.uniform({}, 0.01, 0.1)},
                   {}, 3, Smooth::no);
}
Case squares(Draw& d, const char* op) {
  const Shape x = d.shape();
  std::vector<Tensor> inputs{d.normal(x), d.normal(x), d.uniform(x, 0.5, 2), d.uniform({}, 0.01, 0.1)};
  if (!d.coin()) return node_case(op, inputs, {}, 2, Smooth::no);
  inputs.push_back(d.normal(x));
  return node_case(op, inputs, {{"momentum", 0.9}}, 3, Smooth::no);
}
Case onnx_optimizer(Draw& d, const char* op) {
  const std::string name(op);
  const int buffers = name == "Adam" ? 2 : 1;
  const std::int64_t tensors = d.number(1, 2);
  std::vector<Tensor> inputs{d.uniform({}, 0.01, 0.1), op::test::i64({}, {d.number(0, 5)})};
  std::vector<Shape> shapes;
  for (std::int64_t i = 0; i < tensors; ++i) shapes.push_back(d.shape(1, 3));
  for (int part = 0; part < 2 + buffers; ++part)
    for (const Shape& shape : shapes) inputs.push_back(part < 2 ? d.normal(shape) : d.uniform(shape, 0.5, 2));
  op::Attributes attributes;
  if (name == "Momentum")
    attributes = {{"mode", std::string(d.coin() ? "standard" : "nesterov")},
                  {"alpha", 0.9},
                  {"beta", 0.5},
                  {"norm_coefficient", 0.01}};
  return node_case(op, inputs, attributes, static_cast<int>(tensors) * (1 + buffers), Smooth::no);
}

}  // namespace

std::vector<Generator> sequence_generators() {
  return {{{"LSTM", "GRU", "RNN"}, recurrent},
          {{"superstep.LSTMGradient"}, lstm_gradient},
          {{"superstep.RecurrentGradient"}, recurrent_gradient},
          {{"Attention"}, attention},
          {{"RotaryEmbedding"}, rotary},
          {{"LinearAttention"}, linear_attention},
          {{"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}, loss},
          {{"superstep.Sgd"}, descent},
          {{"superstep.Adam", "superstep.Adamax", "superstep.Lamb"}, moments},
          {{"superstep.RMSProp"}, squares},
          {{"Adagrad", "Momentum", "Adam"}, onnx_optimizer}};
}

}  // namespace superstep::matrix
