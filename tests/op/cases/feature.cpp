#include "superstep/op/core/definition.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

// Results are f32, in which differences of f64 inputs mean nothing: values are compared in test_feature.cpp.
Case featured(const char* op, const char* name, Attributes attributes, std::vector<Tensor> inputs) {
  const Function function = [=](Builder& builder, std::span<const Var> x) {
    return builder.node(op, x, attributes);
  };
  return {op, name, function, std::move(inputs), Smooth::no, false};
}

}  // namespace

std::vector<Case> feature_cases() {
  using Numbers = std::vector<double>;
  const Tensor rows = random_tensor({3, 4}, 290);
  Case extracted = featured("ArrayFeatureExtractor", "columns", {}, {rows, i64({1, 2}, {3, 0})});
  extracted.smooth = Smooth::twice;
  extracted.reduced = true;
  return {
      extracted,
      featured("Binarizer", "threshold", {{"threshold", 0.5}}, {rows}),
      featured("Normalizer", "largest", {}, {uniform_tensor({3, 4}, 291, 0.5, 2)}),
      featured("Normalizer", "L2", {{"norm", std::string("L2")}}, {rows}),
      featured("Scaler", "a number a feature", {{"offset", Numbers{1, 2, 3, 4}}, {"scale", Numbers{0.5}}},
               {rows}),
      featured("LinearRegressor", "two targets",
               {{"coefficients", Numbers{1, 2, 3, 4, -1, 0, 1, 0}},
                {"intercepts", Numbers{10, 20}},
                {"targets", std::int64_t{2}}},
               {rows}),
  };
}

}  // namespace superstep::op::test
