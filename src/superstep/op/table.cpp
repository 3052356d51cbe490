// Every operator there is: one line a family.
#include <vector>

#include "superstep/op/core/definition.h"
#include "superstep/op/elementwise/activation.h"
#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/elementwise/cast.h"
#include "superstep/op/elementwise/integer.h"
#include "superstep/op/elementwise/logic.h"
#include "superstep/op/elementwise/random.h"
#include "superstep/op/elementwise/trigonometry.h"
#include "superstep/op/elementwise/unary.h"
#include "superstep/op/move/creation.h"
#include "superstep/op/move/gather.h"
#include "superstep/op/move/index_range.h"
#include "superstep/op/move/movement.h"
#include "superstep/op/move/segment.h"
#include "superstep/op/move/view.h"
#include "superstep/op/product/attention.h"
#include "superstep/op/product/cholesky.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/product/determinant.h"
#include "superstep/op/product/einsum.h"
#include "superstep/op/product/fourier.h"
#include "superstep/op/product/matmul.h"
#include "superstep/op/product/quantization.h"
#include "superstep/op/product/spectral.h"
#include "superstep/op/rows/channel_statistics.h"
#include "superstep/op/rows/cumulative.h"
#include "superstep/op/rows/feature.h"
#include "superstep/op/rows/group_normalization.h"
#include "superstep/op/rows/loss.h"
#include "superstep/op/rows/normalization.h"
#include "superstep/op/rows/normalization_gradient.h"
#include "superstep/op/rows/parts_mean.h"
#include "superstep/op/rows/reduction.h"
#include "superstep/op/rows/softmax.h"
#include "superstep/op/rows/vectorizer.h"
#include "superstep/op/sequence/recurrent.h"
#include "superstep/op/sequence/recurrent_gradient.h"
#include "superstep/op/training/optimizer.h"
#include "superstep/op/window/fold.h"
#include "superstep/op/window/pooling.h"
#include "superstep/op/window/rearrange.h"
#include "superstep/op/window/region.h"
#include "superstep/op/window/resize.h"
#include "superstep/op/window/sampling.h"

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
    cholesky_operators,
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
    fourier_operators,
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
    index_range_operators,
    segment_operators,
    vectorizer_operators,
    feature_operators,
    creation_operators,
    window_operators,
    random_operators,
    random_number_operators,
    quantization_operators,
    quantized_product_operators,
    optimizer_operators,
    adaptive_optimizer_operators,
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

}  // namespace superstep::op
