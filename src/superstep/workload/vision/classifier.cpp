#include "superstep/workload/vision/classifier.h"

#include <fmt/format.h>

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/move/view.h"
#include "superstep/op/window/pooling.h"
#include "superstep/workload/vision/photographs.h"

namespace superstep::workload {

ClassifierSizes classifier_sizes(const Options& options) {
  const ClassifierSizes sizes{options.integer("size", 32, 1024), options.integer("classes", 2, 100000)};
  if (sizes.size % 4 != 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} pixels per side are no multiple of 4", sizes.size), "option size");
  return sizes;
}

Var image_input(Builder& builder, std::int64_t batch, std::int64_t size) {
  return builder.input("image", ElementType::f32, {batch, 3, size, size});
}

Var pooled(Builder& builder, Var x) {
  const op::NameScope scope(builder, "pool");
  return op::flatten(op::global_average_pool(x));
}

std::int64_t rounded_width(double width, std::int64_t divisor) {
  const auto half = static_cast<double>(divisor) / 2;
  std::int64_t rounded = std::max(divisor, static_cast<std::int64_t>(width + half) / divisor * divisor);
  if (static_cast<double>(rounded) < 0.9 * width) rounded += divisor;
  return rounded;
}

Var squeeze_excite(Layers& layers, Var x, const std::string& name, std::int64_t squeezed,
                   Var (Layers::*inner)(Var), Var (*gate)(Var)) {
  Var mean;
  {
    const op::NameScope scope(layers.builder(), name);
    mean = op::global_average_pool(x);
  }
  const Var code = (layers.*inner)(layers.conv(mean, name + ".reduce", squeezed, 1));
  const Var scores = layers.conv(code, name + ".expand", x.shape()[1], 1);
  const op::NameScope scope(layers.builder(), name);
  return x * gate(scores);
}

transform::LossSpec loss_of_labels(double smoothing) {
  return {{transform::LossTerm{
      .kind = transform::LossKind::cross_entropy, .target = "label", .smoothing = smoothing}}};
}

Recipe by_rmsprop(double rate) {
  return {
      .batch = 256,
      .epochs = 350,
      .loss = loss_of_labels(0.1),
      .optimizer = {.kind = transform::OptimizerKind::rmsprop,
                    .momentum = 0.9,
                    .beta2 = 0.9,
                    .epsilon = 1e-3,
                    .weight_decay = 1e-5,
                    .decay_vectors = false},
      .learning_rate = rate,
      .rate_of_batch = 4096,
      .schedule = {.kind = Schedule::Kind::exponential, .warm_up_epochs = 5, .period = 2.4, .factor = 0.97},
      .average = 0.9999,
      .source = "M. Tan, Q. Le, ICML 2019; batch chosen here, the rate is proportional to it"};
}

Workload classifier(std::int64_t size) {
  return {
      .name = {},
      .summary = {},
      .options = {{"size", std::to_string(size), "pixels per side, a multiple of 4"},
                  {"classes", "1000", "classes to tell apart"}},
      .build = nullptr,
      .parameters = 0,
      .inputs = {{"image",
                  ElementType::f32,
                  {3, size, size},
                  "",
                  "red, green, blue; pixels divided by 255, less 0.5, times 4"}},
      .outputs = {{"logits", ElementType::f32, {1000}, "", "a score a class; softmax makes probabilities"}},
      .targets = {{"label", ElementType::i64, {}, "", "the number of the class"}},
      .training = {.batch = 32,
                   .epochs = 20,
                   .loss = loss_of_labels(),
                   .optimizer = {.kind = transform::OptimizerKind::sgd,
                                 .momentum = 0.9,
                                 .weight_decay = 5e-5},
                   .learning_rate = 0.05,
                   .schedule = {.kind = Schedule::Kind::cosine, .warm_up_share = 0.05}},
      .open = open_photographs,
      .metrics = {{"accuracy", "", true}},
      .target = QualityTarget{.metric = "accuracy", .value = 0.80, .higher_is_better = true},
  };
}

}  // namespace superstep::workload
