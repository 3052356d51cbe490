#include "superstep/op/elementwise/random.h"

#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

Function node(const char* op, Attributes attributes, int outputs = 1) {
  return [=](Builder& builder, std::span<const Var> x) { return builder.node(op, x, attributes, outputs); };
}

Case drawn(const char* op, const char* name, Attributes attributes, std::vector<Tensor> inputs) {
  const bool follows_input = !inputs.empty();  // in its element type
  return {op, name, node(op, std::move(attributes)), std::move(inputs), Smooth::no, follows_input};
}

// One step of two tensors: each with its gradient and `buffers` buffers (positive, as sums of squares are).
Case optimized(const char* op, const char* name, Attributes attributes, int buffers, std::int64_t count) {
  Case result{
      op, name, node(op, std::move(attributes), 2 * (1 + buffers)), {f64({}, {0.1}), i64({}, {count})}};
  for (int part = 0; part < 2 + buffers; ++part) {
    const auto seed = static_cast<std::uint64_t>(270 + 2 * part);
    result.inputs.push_back(part < 2 ? random_tensor({2, 3}, seed) : uniform_tensor({2, 3}, seed, 0.5, 2));
    result.inputs.push_back(part < 2 ? random_tensor({4}, seed + 1) : uniform_tensor({4}, seed + 1, 0.5, 2));
  }
  return result;
}

}  // namespace

std::vector<Case> random_cases() {
  const std::vector<std::int64_t> shape{3, 4};
  const Tensor like = random_tensor({3, 4}, 260), probabilities = uniform_tensor({3, 4}, 261, 0, 1);
  return {
      drawn("RandomUniform", "f32", {{"shape", shape}, {"low", -1.0}, {"high", 2.0}}, {}),
      drawn("RandomUniformLike", "its type", {{"seed", 3.0}}, {like}),
      drawn("RandomNormal", "f32", {{"shape", shape}, {"mean", 4.0}, {"scale", 0.5}}, {}),
      drawn("RandomNormalLike", "its type", {{"seed", 3.0}}, {like}),
      drawn("Bernoulli", "its type", {{"seed", 3.0}}, {probabilities}),
      drawn("Multinomial", "i32", {{"sample_size", std::int64_t{5}}}, {like}),
      {"superstep.StochasticDepth", "served", OF(stochastic_depth(x[0], 0.3)), {like}},
      optimized("Adagrad", "decay and regularization", {{"decay_factor", 0.1}, {"norm_coefficient", 0.01}}, 1,
                2),
      optimized(
          "Momentum", "standard",
          {{"mode", std::string("standard")}, {"alpha", 0.9}, {"beta", 0.5}, {"norm_coefficient", 0.01}}, 1,
          0),
      optimized("Momentum", "Nesterov",
                {{"mode", std::string("nesterov")}, {"alpha", 0.9}, {"beta", 0.5}, {"norm_coefficient", 0.0}},
                1, 3),
      optimized("Adam", "first step", {}, 2, 0),
      optimized("Adam", "later step, regularization",
                {{"norm_coefficient", 0.01}, {"norm_coefficient_post", 0.001}, {"epsilon", 1e-3}}, 2, 5),
  };
}

}  // namespace superstep::op::test
