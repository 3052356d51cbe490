#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/op/core/checks.h"
#include "superstep/op/core/rules.h"
#include "superstep/op/core/wide.h"
#include "superstep/op/window/region.h"

namespace superstep::op {
namespace {

enum Input : std::size_t { boxes_input, scores_input, limit_input, overlap_input, score_input };

const Tensor* known(const InferContext& context, std::size_t input, const char* name) {
  if (!context.has(input)) return nullptr;
  if (context.constants[input]) return context.constants[input];
  throw Error(ErrorCode::unsupported,
              fmt::format("the shape of the result depends on the elements of input {}, which must be known "
                          "when the graph is compiled",
                          name),
              {}, "cut the model before this operator and choose boxes afterwards");
}

// Corners, smaller ones first.
struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_at(const std::vector<double>& boxes, std::int64_t position, bool centred) {
  const double* b = boxes.data() + 4 * position;
  if (centred) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

bool overlap(const Box& a, const Box& b, double threshold) {
  const double height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
  const double width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return false;
  const double common = height * width, all = a.area() + b.area() - common;
  return a.area() > 0 && b.area() > 0 && static_cast<float>(common / all) > static_cast<float>(threshold);
}

struct Limits {
  std::int64_t most = 0;
  double overlap = 0, score = -std::numeric_limits<double>::infinity();
  bool centred = false;
};

// The boxes of one class of one picture that are kept, best first; of equal scores the lower position.
std::vector<std::int64_t> kept_boxes(std::span<const double> scores, const std::vector<Box>& boxes,
                                     const Limits& limits) {
  std::vector<std::int64_t> order, kept;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > limits.score) order.push_back(static_cast<std::int64_t>(i));
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::int64_t i) { return scores[static_cast<std::size_t>(i)]; });
  for (std::int64_t candidate : order) {
    if (static_cast<std::int64_t>(kept.size()) >= limits.most) break;
    const Box& box = boxes[static_cast<std::size_t>(candidate)];
    if (std::ranges::none_of(kept, [&](std::int64_t other) {
          return overlap(box, boxes[static_cast<std::size_t>(other)], limits.overlap);
        }))
      kept.push_back(candidate);
  }
  return kept;
}

std::vector<std::array<std::int64_t, 3>> selection(const Tensor& boxes, const Tensor& scores,
                                                   const Limits& limits) {
  const std::vector<double> corners = widen<double>(boxes), all_scores = widen<double>(scores);
  const std::int64_t pictures = scores.shape()[0], classes = scores.shape()[1], count = scores.shape()[2];
  std::vector<std::array<std::int64_t, 3>> result;
  for (std::int64_t picture = 0; picture < pictures; ++picture) {
    std::vector<Box> own;
    for (std::int64_t i = 0; i < count; ++i)
      own.push_back(box_at(corners, picture * count + i, limits.centred));
    for (std::int64_t c = 0; c < classes; ++c) {
      const auto first = static_cast<std::size_t>((picture * classes + c) * count);
      for (std::int64_t box :
           kept_boxes(std::span(all_scores).subspan(first, static_cast<std::size_t>(count)), own, limits))
        result.push_back({picture, c, box});
    }
  }
  return result;
}

Limits limits_of(const Attributes& attributes, const Tensor* most, const Tensor* overlap_limit,
                 const Tensor* score) {
  Limits limits;
  if (most) limits.most = integer_of(*most);
  if (overlap_limit) limits.overlap = overlap_limit->at(0);
  if (score) limits.score = score->at(0);
  limits.centred = attributes.integer("center_point_box", 0) != 0;
  return limits;
}

std::vector<ValueType> infer_selection(const InferContext& context) {
  require_floating(context, boxes_input, "boxes");
  require_floating(context, scores_input, "scores");
  require_rank(context, boxes_input, "boxes", 3);
  require_rank(context, scores_input, "scores", 3);
  const Shape& scores = context.input(scores_input).shape;
  require_shape(context, boxes_input, "boxes", {scores[0], scores[2], 4});
  for (std::size_t i : {limit_input, overlap_input, score_input})
    if (context.has(i))
      require_scalar(context, i, i == limit_input ? "max_output_boxes_per_class" : "threshold");
  if (context.has(limit_input)) require_integer(context, limit_input, "max_output_boxes_per_class");
  const Tensor& boxes = *known(context, boxes_input, "boxes");
  const Limits limits = limits_of(
      context.attributes, known(context, limit_input, "max_output_boxes_per_class"),
      known(context, overlap_input, "iou_threshold"), known(context, score_input, "score_threshold"));
  const auto kept = selection(boxes, *known(context, scores_input, "scores"), limits);
  return {{ElementType::i64, Shape{static_cast<std::int64_t>(kept.size()), 3}}};
}

void evaluate_selection(const EvaluateContext& context) {
  const auto optional = [&](std::size_t i) { return context.has(i) ? &context.input(i) : nullptr; };
  const Limits limits =
      limits_of(context.attributes, optional(limit_input), optional(overlap_input), optional(score_input));
  auto y = context.output(0).as<std::int64_t>().begin();
  for (const auto& row : selection(context.input(boxes_input), context.input(scores_input), limits))
    y = std::ranges::copy(row, y).out;
}

// The same with room for `bound` boxes: what has no room is counted, and places without a box are zero.
std::vector<ValueType> infer_bounded(const InferContext& context) {
  require_floating(context, boxes_input, "boxes");
  require_floating(context, scores_input, "scores");
  require_rank(context, scores_input, "scores", 3);
  const Shape& scores = context.input(scores_input).shape;
  require_shape(context, boxes_input, "boxes", {scores[0], scores[2], 4});
  const std::int64_t bound = context.attributes.integer("bound", 0);
  require(bound >= 0, fmt::format("attribute 'bound' is {}, expected a count", bound));
  return {{ElementType::i64, Shape{bound, 3}}, {ElementType::i64, Shape{}}};
}

void evaluate_bounded(const EvaluateContext& context) {
  const auto optional = [&](std::size_t i) { return context.has(i) ? &context.input(i) : nullptr; };
  const Limits limits =
      limits_of(context.attributes, optional(limit_input), optional(overlap_input), optional(score_input));
  const auto kept = selection(context.input(boxes_input), context.input(scores_input), limits);
  if (context.wants(1)) context.output(1).as<std::int64_t>()[0] = static_cast<std::int64_t>(kept.size());
  if (!context.wants(0)) return;
  auto y = context.output(0).as<std::int64_t>();
  std::ranges::fill(y, 0);
  for (std::size_t i = 0; i < kept.size() && 3 * i < y.size(); ++i)
    std::ranges::copy(kept[i], y.begin() + static_cast<std::ptrdiff_t>(3 * i));
}

// Sorted scores, and every pair of boxes of a class at worst.
double selection_flops(const Attributes&, std::span<const ValueType> inputs, std::span<const ValueType>) {
  const auto scores = static_cast<double>(inputs[1].shape.element_count());
  return 8.0 * scores * static_cast<double>(inputs[1].shape[2]);
}

}  // namespace

Var non_max_suppression(Var boxes, Var scores, const NonMaxSuppressionAttributes& a) {
  Builder& b = boxes.builder();
  return b.node1(
      "NonMaxSuppression",
      {boxes, scores, b.constant(Tensor::scalar(a.max_output)),
       b.scalar(ElementType::f32, a.overlap_threshold), b.scalar(ElementType::f32, a.score_threshold)},
      {{"center_point_box", std::int64_t{a.centred}}});
}

std::span<const Definition> detection_operators() {
  static const Definition definitions[] = {
      {.name = "NonMaxSuppression",
       .since_opset = 10,
       .min_inputs = 2,
       .max_inputs = 5,
       .traits = {.elements = Elements::floating,
                  .work = WorkKind::unsupported,
                  .attributes = "center_point_box"},
       .infer = infer_selection,
       .flops = selection_flops,
       .evaluate = evaluate_selection,
       .vjp = zero_vjp,
       .jvp = zero_jvp,
       .shape_inputs = 0b11111u},
      {.name = "superstep.KeptBoxes",
       .since_opset = 0,
       .min_inputs = 2,
       .max_inputs = 5,
       .min_outputs = 2,
       .max_outputs = 2,
       .traits = {.elements = Elements::floating, .work = WorkKind::reduction},
       .infer = infer_bounded,
       .flops = selection_flops,
       .evaluate = evaluate_bounded,
       .vjp = zero_vjp,
       .jvp = zero_jvp},
  };
  return definitions;
}

}  // namespace superstep::op
