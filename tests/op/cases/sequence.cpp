#include "superstep/op/move/movement.h"
#include "superstep/op/product/attention.h"
#include "superstep/op/product/fourier.h"
#include "superstep/op/product/spectral.h"
#include "superstep/op/sequence/recurrent.h"
#include "superstep/op/sequence/recurrent_gradient.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

using Extents = std::vector<std::int64_t>;

// A recurrent node with all optional inputs that are asked for; steps 4, batch 3, inputs 2, hidden 2.
struct Cell {
  const char* op;
  std::int64_t gates;
  int outputs;
};
constexpr Cell rnn_cell{"RNN", 1, 2}, gru_cell{"GRU", 3, 2}, lstm_cell{"LSTM", 4, 3};

struct Options {
  bool bias = false, lengths = false, initial = false, peephole = false;
};

Case recurrent(const char* name, const Cell& cell, Attributes attributes, Options options) {
  const std::int64_t hidden = 2, rows = cell.gates * hidden;
  const std::int64_t d = attributes.text("direction", "forward") == "bidirectional" ? 2 : 1;
  const bool batch_first = attributes.integer("layout", 0) != 0;
  const Shape sequence = batch_first ? Shape{3, 4, 2} : Shape{4, 3, 2};
  const Shape state = batch_first ? Shape{3, d, hidden} : Shape{d, 3, hidden};
  std::vector<Tensor> inputs = {random_tensor(sequence, 150), random_tensor({d, rows, 2}, 151, 0.5),
                                random_tensor({d, rows, hidden}, 152, 0.5)};
  std::vector<std::size_t> places = {0, 1, 2};
  const auto add = [&](bool wanted, std::size_t place, Tensor tensor) {
    if (!wanted) return;
    places.push_back(place);
    inputs.push_back(std::move(tensor));
  };
  add(options.bias, 3, random_tensor({d, 2 * rows}, 153, 0.5));
  add(options.lengths, 4, i64({3}, {4, 1, 3}));
  add(options.initial, 5, random_tensor(state, 154));
  add(options.initial && cell.gates == 4, 6, random_tensor(state, 155));
  add(options.peephole, 7, random_tensor({d, 3 * hidden}, 156));
  const Function function = [=](Builder& builder, std::span<const Var> x) {
    std::vector<Var> all(8);
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = x[i];
    return builder.node(cell.op, all, attributes, cell.outputs);
  };
  return {cell.op, name, function, inputs};
}

// Both ways, with a function of their own for each place.
Case with_functions(std::vector<std::string> names, Smooth smooth) {
  Attributes attributes{{"direction", std::string("bidirectional")}};
  const std::string name = names[0] + " and others";
  attributes.set("activations", std::move(names));
  Case result = recurrent("", lstm_cell, attributes, {.bias = true, .peephole = true});
  result.name = name;
  result.smooth = smooth;
  return result;
}

// The operator as the rule of LSTM uses it: on the Y that the LSTM made. Steps 3, batch 2, inputs 2,
// hidden 2.
Case lstm_backward(const char* name, std::int64_t d, Attributes attributes, bool last_states) {
  const bool batch_first = attributes.integer("layout", 0) != 0;
  const Shape state = batch_first ? Shape{2, d, 2} : Shape{d, 2, 2};
  std::vector<Tensor> inputs = {random_tensor(batch_first ? Shape{2, 3, 2} : Shape{3, 2, 2}, 180),
                                random_tensor({d, 8, 2}, 181, 0.5),
                                random_tensor({d, 8, 2}, 182, 0.5),
                                random_tensor({d, 16}, 183, 0.5),
                                random_tensor(state, 184),
                                random_tensor(state, 185),
                                random_tensor(batch_first ? Shape{2, 3, d, 2} : Shape{3, d, 2, 2}, 186)};
  if (last_states) inputs.insert(inputs.end(), {random_tensor(state, 187), random_tensor(state, 188)});
  const Function function = [=](Builder& builder, std::span<const Var> x) {
    const Var forward[] = {x[0], x[1], x[2], x[3], Var(), x[4], x[5]};
    const Var y = builder.node("LSTM", forward, attributes, 3)[0];
    return lstm_gradient(x.first(6), y, x.subspan(6), attributes);
  };
  return {"superstep.LSTMGradient", name, function, inputs};
}

// The same of any cell: all its inputs but the lengths are given. Derivatives of it are those of its parts,
// which takes long to show: one case does.
Case recurrent_backward(const char* name, const Cell& cell, Attributes attributes, bool lengths, bool y) {
  const bool lstm = cell.gates == 4, batch_first = attributes.integer("layout", 0) != 0;
  Case result = recurrent(cell.op, cell, attributes,
                          {.bias = true, .lengths = lengths, .initial = true, .peephole = lstm});
  std::vector<std::size_t> places = {0, 1, 2, 3};
  if (lengths) places.push_back(4);
  for (std::size_t place = 5; place < (lstm ? 8 : 6); ++place) places.push_back(place);
  const std::int64_t d = attributes.text("direction", "forward") == "bidirectional" ? 2 : 1;
  result.inputs.push_back(random_tensor(batch_first ? Shape{3, 4, d, 2} : Shape{4, d, 3, 2}, 157));
  result.inputs.push_back(random_tensor(batch_first ? Shape{3, d, 2} : Shape{d, 3, 2}, 158));
  places.insert(places.end(), {9, 10});  // the cotangents of Y and Y_h
  result.op = "superstep.RecurrentGradient";
  result.name = name;
  if (y) result.smooth = Smooth::no;
  result.function = [=](Builder& builder, std::span<const Var> x) {
    std::vector<Var> all(11);
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = x[i];
    if (y) all[8] = builder.node(cell.op, std::span(all).first(8), attributes, cell.outputs)[0];
    Attributes own = attributes;
    own.set("cell", std::string(cell.op));
    return builder.node("superstep.RecurrentGradient", all, own, lstm ? 7 : 5);
  };
  return result;
}

Attributes directed(const char* direction) { return {{"direction", std::string(direction)}}; }

std::vector<Tensor> heads(std::int64_t q_heads, std::int64_t k_heads, std::int64_t queries,
                          std::int64_t keys) {
  return {random_tensor({2, q_heads, queries, 4}, 160), random_tensor({2, k_heads, keys, 4}, 161),
          random_tensor({2, k_heads, keys, 3}, 162)};
}

Case attended(const char* name, std::vector<Tensor> inputs, AttentionAttributes attributes) {
  return {"Attention", name, OF(attention(x[0], x[1], x[2], x.size() > 3 ? x[3] : Var(), attributes)),
          std::move(inputs)};
}

std::vector<Tensor> with(std::vector<Tensor> inputs, Tensor more) {
  inputs.push_back(std::move(more));
  return inputs;
}

}  // namespace

std::vector<Case> recurrent_cases() {
  const std::vector<std::string> softer = {"Softsign", "ScaledTanh"};
  Attributes everything = directed("bidirectional");
  everything.set("layout", std::int64_t{1});
  Attributes before_reset = directed("reverse");
  before_reset.set("linear_before_reset", std::int64_t{1});
  Attributes coupled = directed("reverse");
  coupled.set("input_forget", std::int64_t{1});
  Attributes chosen = directed("bidirectional");
  chosen.set("activations", std::vector<std::string>{"Softsign", "Affine"});
  chosen.set("activation_alpha", std::vector<double>{0.5});
  chosen.set("activation_beta", std::vector<double>{0.1});
  return {
      recurrent("plain", rnn_cell, {}, {}),
      recurrent("reverse with lengths", rnn_cell, directed("reverse"), {.bias = true, .lengths = true}),
      recurrent("chosen activations", rnn_cell, chosen, {.initial = true}),
      recurrent("plain", gru_cell, {}, {}),
      recurrent("linear before reset", gru_cell, before_reset, {.bias = true, .initial = true}),
      recurrent("both ways, batch first", gru_cell, everything,
                {.bias = true, .lengths = true, .initial = true}),
      recurrent("plain", lstm_cell, {}, {}),
      recurrent("everything", lstm_cell, everything,
                {.bias = true, .lengths = true, .initial = true, .peephole = true}),
      recurrent("coupled, reverse", lstm_cell, coupled, {.bias = true}),
      recurrent("clipped", lstm_cell, {{"clip", 0.6}}, {.bias = true}),
      recurrent("both ways, batch first", lstm_cell, everything, {.bias = true, .initial = true}),
      lstm_backward("forward", 1, {}, false),
      lstm_backward("both ways, batch first, last states", 2, everything, true),
      with_functions({"Softplus", "Elu", "ScaledTanh", "Sigmoid", "Softsign", "Affine"}, Smooth::twice),
      with_functions({"HardSigmoid", "LeakyRelu", "Tanh", "Sigmoid", "Relu", "ThresholdedRelu"},
                     Smooth::once),
      recurrent_backward("RNN, reverse", rnn_cell, directed("reverse"), false, true),
      recurrent_backward("RNN, batch first, Y is not known", rnn_cell,
                         {{"clip", 0.7}, {"layout", std::int64_t{1}}}, false, false),
      recurrent_backward("GRU, linear before reset", gru_cell, before_reset, false, true),
      recurrent_backward("GRU, both ways, batch first", gru_cell, everything, false, true),
      recurrent_backward("GRU, both ways, lengths", gru_cell, everything, true, true),
      recurrent_backward("LSTM, everything", lstm_cell, everything, true, true),
      recurrent_backward("LSTM, coupled, reverse", lstm_cell, coupled, false, true),
  };
}

std::vector<Case> attention_cases() {
  const Tensor mask = booleans({3, 5}, {1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1});
  const Tensor flat = random_tensor({2, 3, 8}, 163), keys = random_tensor({2, 5, 4}, 164);
  const Tensor cosines = random_tensor({6, 2}, 165), sines = random_tensor({6, 2}, 166),
               positions = i64({2, 3}, {0, 5, 2, 1, 1, 4});
  const Function cached = [](Builder& builder, std::span<const Var> x) {
    const Var inputs[] = {x[0], x[1], x[2], Var(), x[3], x[4]};
    return builder.node("Attention", inputs,
                        {{"is_causal", std::int64_t{1}}, {"qk_matmul_output_mode", std::int64_t{3}}}, 4);
  };
  const Function padded = [](Builder& builder, std::span<const Var> x) {
    const Var inputs[] = {x[0], x[1], x[2], Var(), Var(), Var(), x[3]};
    return builder.node("Attention", inputs, {{"is_causal", std::int64_t{1}}});
  };
  const Function windowed = [](Builder& builder, std::span<const Var> x) {
    return builder.node("Attention", x,
                        {{"left_window_size", std::int64_t{1}}, {"right_window_size", std::int64_t{0}}});
  };
  // The second query may look at no key: its row is zero, as are its derivatives.
  const Tensor blind = booleans({3, 5}, {1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 1});
  return {
      attended("plain", heads(2, 2, 3, 5), {}),
      {"Attention", "a window of two keys", windowed, heads(2, 2, 4, 4)},
      attended("a query that sees nothing", with(heads(2, 2, 3, 5), blind), {}),
      attended("mask of one axis", with(heads(2, 2, 3, 5), booleans({5}, {1, 0, 1, 1, 0})), {}),
      attended("causal, capped", heads(2, 2, 4, 4), {.causal = true, .softcap = 2}),
      attended("shared key heads, scaled", heads(4, 2, 3, 5), {.scale = 0.3}),
      attended("mask of bool", with(heads(2, 2, 3, 5), mask), {}),
      attended("mask that is added", with(heads(2, 2, 3, 5), random_tensor({2, 1, 3, 5}, 167)), {}),
      attended("rank 3", {flat, keys, random_tensor({2, 5, 2}, 168)}, {.query_heads = 4, .key_heads = 2}),
      {"Attention", "with a past", cached,
       with(with(heads(2, 2, 2, 2), random_tensor({2, 2, 3, 4}, 169)), random_tensor({2, 2, 3, 3}, 170))},
      {"Attention", "padded keys", padded, with(heads(2, 2, 2, 5), i64({2}, {5, 3}))},
      {"RotaryEmbedding",
       "halves",
       OF(rotary_embedding(x[0], x[1], x[2], x[3])),
       {random_tensor({2, 2, 3, 4}, 171), cosines, sines, positions}},
      {"RotaryEmbedding",
       "neighbors, part of a head",
       OF(rotary_embedding(x[0], x[1], x[2], x[3], {.interleaved = true, .dimension = 4})),
       {random_tensor({2, 2, 3, 6}, 172), cosines, sines, positions}},
      {"RotaryEmbedding",
       "rank 3, without positions",
       OF(rotary_embedding(x[0], x[1], x[2], {}, {.heads = 2})),
       {flat, random_tensor({2, 3, 2}, 173), random_tensor({2, 3, 2}, 174)}},
  };
}

std::vector<Case> spectral_cases() {
  const Tensor real = random_tensor({2, 6, 1}, 175), complex = random_tensor({2, 5, 2}, 176),
               picture = random_tensor({1, 3, 4, 2}, 177);
  const auto window = [](const char* op, std::int64_t periodic) {
    return Case{op,
                periodic ? "periodic" : "symmetric",
                OF(b.node1(op, {b.constant(Tensor::scalar<std::int64_t>(7))}, {{"periodic", periodic}})),
                {},
                Smooth::no,
                false};
  };
  return {
      {"DFT", "real", OF(dft(x[0], 1)), {real}},
      {"DFT", "real, one side", OF(dft(x[0], 1, false, true)), {real}},
      {"DFT", "complex, odd", OF(dft(x[0], 1)), {complex}},
      {"DFT", "complex, one side", OF(dft(x[0], 1, false, true)), {complex}},
      {"DFT", "inverse", OF(dft(x[0], 1, true)), {complex}},
      {"DFT", "inverse to real numbers", OF(dft(x[0], 1, true, true)), {complex}},
      {"DFT", "inverse to an odd number of real numbers", OF(dft(x[0], 1, true, true, 7)), {complex}},
      {"DFT", "filled up", OF(dft(x[0], 1, false, false, 8)), {complex}},
      {"DFT", "cut", OF(dft(x[0], 1, true, false, 3)), {complex}},
      {"DFT", "many numbers", OF(dft(x[0], 1)), {random_tensor({3, 44, 2}, 178)}},
      {"DFT", "two axes", OF(dft(dft(x[0], 1), 2)), {picture}},
      {"superstep.Fourier",
       "real",
       [](op::Builder&, std::span<const Var> x) {
         const Complex y = fourier({x[0], {}}, {1});
         return std::vector{y.re, y.im};
       },
       {random_tensor({2, 6}, 182)}},
      {"superstep.Fourier",
       "three axes, inverse, scaled",
       [](op::Builder&, std::span<const Var> x) {
         const Complex y = fourier({x[0], x[1]}, {0, -2, 3}, true, 0.25);
         return std::vector{y.re, y.im};
       },
       {random_tensor({2, 2, 3, 4}, 183), random_tensor({2, 2, 3, 4}, 184)}},
      {"superstep.Fourier",
       "its real part alone",
       [](op::Builder&, std::span<const Var> x) {
         return std::vector{fourier({x[0], x[1]}, {0}).re};
       },
       {random_tensor({5, 2}, 185), random_tensor({5, 2}, 186)}},
      {"superstep.Fourier",
       "its imaginary part alone",
       [](op::Builder&, std::span<const Var> x) {
         return std::vector{fourier({x[0], x[1]}, {0}).im};
       },
       {random_tensor({5, 2}, 187), random_tensor({5, 2}, 188)}},
      {"superstep.Fourier",
       "diffraction: magnitude of a padded object",
       [](op::Builder&, std::span<const Var> x) {
         const Complex object = polar(x[0], x[1]);
         const std::vector<std::int64_t> around{1, 1, 2, 1};
         const Complex far = fourier({pad(object.re, around), pad(object.im, around)}, {0, 1});
         return std::vector{magnitude(far)};
       },
       {uniform_tensor({3, 3}, 189, 0.5, 1), random_tensor({3, 3}, 190)}},
      {"superstep.Fourier",
       "product and angle",
       [](op::Builder&, std::span<const Var> x) {
         return std::vector{angle(product(fourier({x[0], x[1]}, {0}), conjugate({x[1], x[0]})))};
       },
       {random_tensor({4}, 191), random_tensor({4}, 192)}},
      {"STFT",
       "real with window",
       OF(stft(x[0], 2, x[1])),
       {random_tensor({2, 9, 1}, 178), random_tensor({4}, 179)}},
      {"STFT",
       "complex, both sides",
       OF(stft(x[0], 3, x[1], false)),
       {random_tensor({1, 8, 2}, 180), random_tensor({3}, 181)}},
      window("HannWindow", 1),
      window("HannWindow", 0),
      window("HammingWindow", 1),
      window("HammingWindow", 0),
      window("BlackmanWindow", 1),
      window("BlackmanWindow", 0),
      {"MelWeightMatrix",
       "small",
       [](Builder& builder, std::span<const Var>) {
         const auto integer = [&](std::int64_t value) { return builder.constant(Tensor::scalar(value)); };
         const auto number = [&](float value) { return builder.constant(Tensor::scalar(value)); };
         return std::vector{builder.node1("MelWeightMatrix",
                                          {integer(6), integer(32), integer(8192), number(0), number(4000)})};
       },
       {},
       Smooth::no,
       false},
  };
}

}  // namespace superstep::op::test
