// Every operator there is: one line a family.
#include <algorithm>
#include <vector>

#include "superstep/op/activation.h"
#include "superstep/op/arithmetic.h"
#include "superstep/op/attention.h"
#include "superstep/op/cast.h"
#include "superstep/op/channel_statistics.h"
#include "superstep/op/convolution.h"
#include "superstep/op/creation.h"
#include "superstep/op/cumulative.h"
#include "superstep/op/definition.h"
#include "superstep/op/determinant.h"
#include "superstep/op/domain.h"
#include "superstep/op/einsum.h"
#include "superstep/op/feature.h"
#include "superstep/op/fold.h"
#include "superstep/op/gather.h"
#include "superstep/op/group_normalization.h"
#include "superstep/op/integer.h"
#include "superstep/op/logic.h"
#include "superstep/op/loss.h"
#include "superstep/op/matmul.h"
#include "superstep/op/movement.h"
#include "superstep/op/normalization.h"
#include "superstep/op/normalization_gradient.h"
#include "superstep/op/optimizer.h"
#include "superstep/op/parts_mean.h"
#include "superstep/op/pooling.h"
#include "superstep/op/quantization.h"
#include "superstep/op/random.h"
#include "superstep/op/rearrange.h"
#include "superstep/op/recurrent.h"
#include "superstep/op/recurrent_gradient.h"
#include "superstep/op/reduction.h"
#include "superstep/op/region.h"
#include "superstep/op/resize.h"
#include "superstep/op/sampling.h"
#include "superstep/op/softmax.h"
#include "superstep/op/spectral.h"
#include "superstep/op/trigonometry.h"
#include "superstep/op/unary.h"
#include "superstep/op/vectorizer.h"
#include "superstep/op/view.h"

namespace superstep::op {

namespace {

using Family = std::span<const Definition> (*)();

// clang-format off
constexpr Family families[] = {
    unary_operators,
    arithmetic_operators,
    trigonometric_operators,
    integer_operators,
    logic_operators,
    cast_operators,
    activation_operators,
    clip_operators,
    gated_activation_operators,
    matmul_operators,
    einsum_operators,
    determinant_operators,
    convolution_operators,
    deformable_convolution_operators,
    max_pooling_operators,
    average_pooling_operators,
    global_pooling_operators,
    fold_operators,
    sampling_operators,
    region_pooling_operators,
    detection_operators,
    resize_operators,
    spectral_operators,
    softmax_operators,
    normalization_operators,
    channel_statistics_operators,
    parts_mean_operators,
    normalization_gradient_operators,
    group_normalization_operators,
    recurrent_operators,
    recurrent_gradient_operators,
    attention_operators,
    sequence_state_operators,
    loss_operators,
    reduction_operators,
    arg_operators,
    cumulative_operators,
    cumulative_product_operators,
    selection_operators,
    view_operators,
    movement_operators,
    slice_operators,
    pad_operators,
    rearrange_operators,
    gather_operators,
    scatter_operators,
    tensor_scatter_operators,
    vectorizer_operators,
    feature_operators,
    creation_operators,
    window_operators,
    random_operators,
    random_number_operators,
    quantization_operators,
    quantized_product_operators,
    optimizer_operators,
    onnx_optimizer_operators,
};
// clang-format on

}  // namespace

std::span<const Definition> all() {
  static const std::vector<Definition> table = [] {
    std::vector<Definition> joined;
    for (Family family : families) joined.insert(joined.end(), family().begin(), family().end());
    return joined;
  }();
  return table;
}

std::string_view domain_of(std::string_view name) {
  const auto has = [&](Family family) {
    return std::ranges::any_of(family(), [&](const Definition& one) { return one.name == name; });
  };
  if (has(feature_operators)) return "ai.onnx.ml";
  if (has(onnx_optimizer_operators)) return "ai.onnx.preview.training";
  return "";
}

}  // namespace superstep::op
