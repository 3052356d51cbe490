#include "superstep/op/rows/feature.h"

#include <fmt/format.h>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/composite.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/rows/reduction.h"

namespace superstep::op {
namespace {

// A list of numbers; empty where the attribute is missing.
std::vector<double> numbers_attribute(const Attributes& attributes, const char* name) {
  const graph::Attribute* attribute = attributes.find(name);
  if (!attribute) return {};
  if (const auto* list = std::get_if<std::vector<double>>(attribute)) return *list;
  refuse(fmt::format("attribute '{}' must hold numbers", name));
}

// Results are f32 whatever the input; integers become numbers first.
Var as_numbers(Var x) { return is_floating(x.element()) ? x : cast(x, ElementType::f64); }

std::vector<ValueType> infer_rows(const InferContext& context) {
  require_numeric(context, 0, "X");
  require_min_rank(context, 0, "X", 1);
  return {{ElementType::f32, context.input(0).shape}};
}

// The elements of the last axis at indices; a vector counts as one row.
std::vector<ValueType> infer_extractor(const InferContext& context) {
  require_min_rank(context, 0, "X", 1);
  require_integer(context, 1, "Y");
  const Shape& x = context.input(0).shape;
  std::vector<std::int64_t> extents(x.begin(), x.end() - 1);
  if (extents.empty()) extents.push_back(1);
  extents.push_back(context.input(1).shape.element_count());
  return {{context.input(0).element, Shape(extents)}};
}

std::vector<Var> decompose_extractor(const DerivativeContext& context) {
  const Var x = context.inputs[0], indices = context.inputs[1];
  const Var rows = x.shape().rank() == 1 ? reshape(x, {1, x.shape()[0]}) : x;
  const Var places =
      indices_within(indices, {.count = rows.shape()[rows.shape().rank() - 1], .what = "input Y"});
  return {gather(rows, reshape(places, {indices.shape().element_count()}), -1)};
}

std::vector<ValueType> infer_binarizer(const InferContext& context) {
  require_numeric(context, 0, "X");
  return {context.input(0)};
}

std::vector<Var> decompose_binarizer(const DerivativeContext& context) {
  const Var x = context.inputs[0];
  return {cast(greater(x, constant_like(x, context.attributes.number("threshold", 0))), x.element())};
}

std::vector<ValueType> infer_normalizer(const InferContext& context) {
  const std::string norm = context.attributes.text("norm", "MAX");
  require(norm == "MAX" || norm == "L1" || norm == "L2",
          fmt::format("attribute 'norm' is '{}', expected MAX, L1 or L2", norm));
  return infer_rows(context);
}

// Each row over its norm; a row without one stays.
std::vector<Var> decompose_normalizer(const DerivativeContext& context) {
  const Var x = as_numbers(context.inputs[0]);
  const std::string kind = context.attributes.text("norm", "MAX");
  const Var norm = kind == "MAX"  ? reduce_max(x, {-1}, true)
                   : kind == "L1" ? reduce_l1(x, {-1}, true)
                                  : reduce_l2(x, {-1}, true);
  const Var divisor = where(equal(norm, constant_like(norm, 0)), constant_like(norm, 1), norm);
  return {cast(x / divisor, ElementType::f32)};
}

// One number, or one a feature.
Var per_feature(const DerivativeContext& context, const char* name, double otherwise, Var x) {
  std::vector<double> values = numbers_attribute(context.attributes, name);
  if (values.empty()) values.push_back(otherwise);
  const auto count = static_cast<std::int64_t>(values.size());
  return context.builder.constant(Tensor::from<double>({count}, values).converted(x.element()));
}

std::vector<ValueType> infer_scaler(const InferContext& context) {
  require_min_rank(context, 0, "X", 1);
  const Shape& x = context.input(0).shape;
  for (const char* name : {"offset", "scale"}) {
    const auto count = static_cast<std::int64_t>(numbers_attribute(context.attributes, name).size());
    require(count <= 1 || count == x[x.rank() - 1],
            fmt::format("attribute '{}' has {} elements, expected 1 or {}", name, count, x[x.rank() - 1]));
  }
  return infer_rows(context);
}

std::vector<Var> decompose_scaler(const DerivativeContext& context) {
  const Var x = as_numbers(context.inputs[0]);
  const Var centred = x - per_feature(context, "offset", 0, x);
  return {cast(centred * per_feature(context, "scale", 1, x), ElementType::f32)};
}

std::vector<ValueType> infer_regressor(const InferContext& context) {
  require_numeric(context, 0, "X");
  require_rank(context, 0, "X", 2);
  const Attributes& a = context.attributes;
  const std::string after = a.text("post_transform", "NONE");
  if (after != "NONE")
    throw Error(ErrorCode::unsupported, fmt::format("attribute 'post_transform' {} is not supported", after));
  const std::int64_t targets = a.integer("targets", 1), features = context.input(0).shape[1];
  require(targets >= 1, fmt::format("attribute 'targets' is {}", targets));
  const auto weights = static_cast<std::int64_t>(numbers_attribute(a, "coefficients").size());
  const auto biases = static_cast<std::int64_t>(numbers_attribute(a, "intercepts").size());
  require(weights % targets == 0 && weights / targets == features,
          fmt::format("attribute 'coefficients' has {} elements, expected {} times {}", weights, targets,
                      features));
  require(biases == 0 || biases == targets,
          fmt::format("attribute 'intercepts' has {} elements, expected {}", biases, targets));
  return {{ElementType::f32, Shape{context.input(0).shape[0], targets}}};
}

std::vector<Var> decompose_regressor(const DerivativeContext& context) {
  const Var x = as_numbers(context.inputs[0]);
  const Var weights = reshape(per_feature(context, "coefficients", 0, x),
                              {context.attributes.integer("targets", 1), x.shape()[1]});
  return {cast(matmul(x, transpose(weights)) + per_feature(context, "intercepts", 0, x), ElementType::f32)};
}

}  // namespace

std::span<const Definition> feature_operators() {
  static const Definition definitions[] = {
      composite<decompose_extractor>(
          {"ArrayFeatureExtractor", 1, 2, 2}, infer_extractor,
          {.elements = Elements::any, .work = WorkKind::elementwise, .domain = "ai.onnx.ml"}),
      composite<decompose_binarizer>(
          {"Binarizer", 1}, infer_binarizer,
          {.elements = Elements::numeric, .work = WorkKind::elementwise, .domain = "ai.onnx.ml"}),
      composite<decompose_normalizer>(
          {"Normalizer", 1}, infer_normalizer,
          {.elements = Elements::numeric, .work = WorkKind::elementwise, .domain = "ai.onnx.ml"}),
      composite<decompose_scaler>(
          {"Scaler", 1}, infer_scaler,
          {.elements = Elements::numeric, .work = WorkKind::elementwise, .domain = "ai.onnx.ml"}),
      composite<decompose_regressor>(
          {"LinearRegressor", 1}, infer_regressor,
          {.elements = Elements::numeric, .work = WorkKind::elementwise, .domain = "ai.onnx.ml"}),
  };
  return definitions;
}

}  // namespace superstep::op
