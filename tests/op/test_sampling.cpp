#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/product/convolution.h"
#include "superstep/op/window/fold.h"
#include "superstep/op/window/pooling.h"
#include "superstep/op/window/region.h"
#include "superstep/op/window/sampling.h"
#include "tests/op/support.h"

namespace superstep::op::test {
namespace {

Tensor identity_map() { return f64({1, 2, 3}, {1, 0, 0, 0, 1, 0}); }

Tensor zeros(Shape shape) { return Tensor(ElementType::f64, std::move(shape)); }

// x[h][w] = 10 h + w: linear interpolation is exact on it.
Tensor ramp(std::int64_t height, std::int64_t width) {
  Tensor tensor(ElementType::f64, {1, 1, height, width});
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, static_cast<double>(10 * (i / width) + i % width));
  return tensor;
}

}  // namespace

TEST(GridSample, TheGridOfTheIdentityGivesThePictureBack) {
  const Tensor picture = random_tensor({1, 2, 4, 5}, 1);
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (bool corners : {false, true})
      expect_equal(result(OF(grid_sample(x[0], affine_grid(x[1], {1, 2, 4, 5}, corners),
                                         {.mode = mode, .align_corners = corners})),
                          {picture, identity_map()}),
                   picture, 1e-12);
}

TEST(GridSample, MirroringReversesAnAxis) {
  const Tensor row = f64({1, 1, 1, 4}, {1, 2, 3, 4}), mirror = f64({1, 2, 3}, {-1, 0, 0, 0, 1, 0});
  expect_values(result(OF(grid_sample(x[0], affine_grid(x[1], {1, 1, 1, 4}))), {row, mirror}), {4, 3, 2, 1},
                1e-12);
}

TEST(GridSample, PaddingOutsideThePicture) {
  const Tensor row = f64({1, 1, 4}, {1, 2, 3, 4});
  // In elements, with corners aligned: -1.5, -0.5, 4.5.
  const Tensor grid = f64({1, 3, 1}, {-2, -4.0 / 3, 2});
  const auto with = [&](const char* padding) {
    return result(OF(grid_sample(x[0], x[1], {.padding = padding, .align_corners = true})), {row, grid});
  };
  expect_values(with("zeros"), {0, 0.5, 0}, 1e-12);
  expect_values(with("border"), {1, 1, 4}, 1e-12);
  expect_values(with("reflection"), {2.5, 1.5, 2.5}, 1e-12);
}

TEST(GridSample, NotANumberAndInfinityReadInside) {
  const Tensor row = f64({1, 1, 2}, {1, 2});
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  expect_values(result(OF(grid_sample(x[0], x[1], {.mode = "nearest"})),
                       {row, f64({1, 3, 1}, {nan, infinity, -infinity})}),
                {0, 0, 0});
}

TEST(GridSample, Refuses) {
  const Tensor picture = zeros({1, 1, 2, 2}), grid = zeros({1, 2, 2, 2});
  expect_refusal(OF(grid_sample(x[0], x[1], {.mode = "lanczos"})), {picture, grid},
                 "attribute 'mode' is 'lanczos', expected linear, nearest or cubic");
  expect_refusal(OF(grid_sample(x[0], x[1], {.padding = "wrap"})), {picture, grid},
                 "attribute 'padding_mode' is 'wrap'");
  expect_refusal(OF(grid_sample(x[0], x[1])), {picture, zeros({1, 2, 2, 3})},
                 "input grid is [1,2,2,3], expected [1, points..., 2]");
  expect_refusal(OF(grid_sample(x[0], x[1])), {zeros({1, 1}), grid},
                 "input X is [1,1], expected rank 3 to 5");
  expect_refusal(OF(grid_sample(x[0], x[1])), {zeros({1, 1, 0, 2}), grid}, "input X has an empty axis");
  expect_refusal(OF(affine_grid(x[0], {1, 1, 2, 2})), {zeros({1, 3, 4})},
                 "input theta is [1,3,4], expected [1, 2, 3]");
  expect_refusal(OF(affine_grid(x[0], {1, 2, 2})), {zeros({1, 2, 3})},
                 "input size has 3 elements, expected 4 or 5");
}

TEST(RoiAlign, IsExactOnARamp) {
  // The region from (1, 2) to (5, 6), corners moved by half an element: its middle is (2.5, 3.5).
  const Tensor rois = f64({1, 4}, {1, 2, 5, 6}), first = i64({1}, {0});
  const Tensor bins = result(OF(roi_align(x[0], x[1], x[2], {.height = 2, .width = 2, .sampling_ratio = 2})),
                             {ramp(8, 8), rois, first});
  expect_values(bins, {10 * 2.5 + 1.5, 10 * 2.5 + 3.5, 10 * 4.5 + 1.5, 10 * 4.5 + 3.5}, 1e-12);
}

TEST(RoiAlign, NeedsConstantRegionsOnlyForDerivativesWithoutARatio) {
  const Function adaptive = OF(roi_align(x[0], x[1], b.integers({0}), {.height = 2, .width = 2}));
  const std::vector<Tensor> point = {ramp(8, 8), f64({1, 4}, {1, 2, 5, 6})};
  const Status status = check_gradients(adaptive, point);
  ASSERT_FALSE(status);
  EXPECT_NE(std::string(status.error().what()).find("must be constant where attribute 'sampling_ratio' is 0"),
            std::string::npos)
      << status.error().what();
}

TEST(RoiAlign, Refuses) {
  const Tensor rois = zeros({1, 4}), first = i64({1}, {0});
  expect_refusal(OF(roi_align(x[0], x[1], x[2], {.mode = "median"})), {ramp(4, 4), rois, first},
                 "attribute 'mode' is 'median', expected avg or max");
  expect_refusal(OF(roi_align(x[0], x[1], x[2], {.height = 0})), {ramp(4, 4), rois, first},
                 "must be positive");
  expect_refusal(OF(roi_align(x[0], x[1], x[2], {})), {ramp(4, 4), zeros({2, 4}), first},
                 "input rois is f64[2,4]");
  expect_refusal(OF(roi_align(x[0], x[1], x[2], {.sampling_ratio = 1})), {ramp(4, 4), rois, i64({1}, {3})},
                 "input batch_indices holds 3, expected 0 to 0");
}

TEST(MaxRoiPool, ByHand) {
  // Columns 1 to 4 and rows 0 to 2 of the ramp, in two bins across.
  expect_values(result(OF(max_roi_pool(x[0], x[1], {1, 2})), {ramp(4, 6), f64({1, 5}, {0, 1, 0, 4, 2})}),
                {22, 24});
  // A region outside has empty bins.
  expect_values(result(OF(max_roi_pool(x[0], x[1], {1, 1})), {ramp(4, 6), f64({1, 5}, {0, 9, 9, 11, 11})}),
                {0});
  expect_refusal(OF(max_roi_pool(x[0], x[1], {2})), {ramp(4, 6), zeros({1, 5})},
                 "'pooled_shape' must hold two");
  expect_refusal(OF(max_roi_pool(x[0], x[1], {2, 2})), {ramp(4, 6), zeros({1, 4})}, "input rois is f64[1,4]");
}

TEST(NonMaxSuppression, KeepsTheBestOfOverlappingBoxes) {
  const Tensor boxes =
      f64({1, 4, 4}, {0, 0, 2, 2, 0, 1, 2, 3, 0, 2, 2, 4, 2, 2, 0, 0});  // the last: corners swapped
  const Tensor scores = f64({1, 1, 4}, {0.5, 0.9, 0.7, 0.6});
  const auto kept = [&](NonMaxSuppressionAttributes attributes) {
    return result(OF(non_max_suppression(b.constant(boxes), b.constant(scores), attributes)), {});
  };
  // Neighbours share a third; 0 and 3 are the same box.
  expect_values(kept({.max_output = 9, .overlap_threshold = 0.3}), {0, 0, 1});
  expect_values(kept({.max_output = 9, .overlap_threshold = 0.4}), {0, 0, 1, 0, 0, 2, 0, 0, 3});
  expect_values(kept({.max_output = 2, .overlap_threshold = 0.4}), {0, 0, 1, 0, 0, 2});
  expect_values(kept({.max_output = 9, .overlap_threshold = 0.4, .score_threshold = 0.65}),
                {0, 0, 1, 0, 0, 2});
  EXPECT_EQ(kept({}).element_count(), 0);
}

TEST(NonMaxSuppression, RefusesWhatIsNotConstant) {
  expect_refusal(OF(non_max_suppression(x[0], x[1], {})), {zeros({1, 2, 4}), zeros({1, 1, 2})},
                 "the shape of the result depends on the elements of input boxes");
  expect_refusal(OF(non_max_suppression(b.constant(x[0].valid() ? zeros({1, 3, 4}) : Tensor()), x[1], {})),
                 {zeros({1, 2, 4}), zeros({1, 1, 2})}, "input boxes is f64[1,3,4]");
}

TEST(Col2Im, CountsHowOftenBlocksCoverAnElement) {
  Tensor ones(ElementType::f64, {1, 4, 4});
  for (std::int64_t i = 0; i < ones.element_count(); ++i) ones.set(i, 1);
  expect_values(result(OF(col2im(x[0], {3, 3}, {2, 2})), {ones}), {1, 2, 1, 2, 4, 2, 1, 2, 1});
}

TEST(Col2Im, Refuses) {
  expect_refusal(OF(col2im(x[0], {3, 3}, {2, 2})), {zeros({1, 4, 5})}, "input has 5 blocks, expected 4");
  expect_refusal(OF(col2im(x[0], {3, 3}, {2, 2})), {zeros({1, 3, 4})},
                 "3 rows are not a multiple of a block's 4 elements");
  expect_refusal(OF(col2im(x[0], {3, 3}, {2})), {zeros({1, 4, 4})}, "have 2 and 1 elements");
  expect_refusal(OF(col2im(x[0], {3}, {-2})), {zeros({1, 4, 4})}, "input block_shape must be positive");
}

TEST(MaxUnpool, PutsTheLargestBack) {
  const PoolAttributes windows = {.kernel_shape = {2, 2}, .strides = {2, 2}};
  const Function back = [&](Builder&, std::span<const Var> x) {
    const MaxPooled pooled = max_pool(x[0], windows);
    return std::vector{max_unpool(pooled.values, pooled.indices, windows)};
  };
  expect_values(result(back, {f64({1, 1, 2, 4}, {1, 9, 2, 3, 4, 5, 8, 7})}), {0, 9, 0, 0, 0, 0, 8, 0});
}

TEST(MaxUnpool, Refuses) {
  const Tensor x0 = zeros({1, 1, 2}), places = i64({1, 1, 2}, {0, 3});
  const PoolAttributes windows = {.kernel_shape = {2}, .strides = {2}};
  expect_refusal(OF(max_unpool(x[0], x[1], windows, {1, 1, 3})), {x0, places}, "smaller than the [1,1,4]");
  expect_refusal(OF(max_unpool(x[0], x[1], windows, {1, 2, 4})), {x0, places},
                 "expected rank 3 with 1 and 1 in front");
  expect_refusal(OF(max_unpool(x[0], x[1], {.kernel_shape = {2, 2}})), {x0, places},
                 "attribute 'kernel_shape' has 2 elements");
  expect_refusal(OF(max_unpool(x[0], x[1], windows)), {x0, i64({1, 1, 2}, {0, 4})},
                 "lies outside the result");
}

TEST(CenterCropPad, OddElementsGoToTheEnd) {
  const Tensor row = f64({5}, {1, 2, 3, 4, 5});
  expect_values(result(OF(center_crop_pad(x[0], {2})), {row}), {2, 3});
  expect_values(result(OF(center_crop_pad(x[0], {8})), {row}), {0, 1, 2, 3, 4, 5, 0, 0});
  expect_refusal(OF(center_crop_pad(x[0], {2, 2})), {row}, "input shape has 2 elements");
  expect_refusal(OF(center_crop_pad(x[0], {-2})), {row}, "a shape has a negative extent");
  expect_refusal(OF(center_crop_pad(x[0], {2}, {1})), {row}, "attribute 'axes' 1 lies outside [-1, 0]");
}

TEST(DeformConv, WithoutOffsetsIsAConvolution) {
  const Tensor x0 = random_tensor({2, 4, 5, 6}, 2), w = random_tensor({6, 2, 2, 3}, 3),
               bias = random_tensor({6}, 4);
  const ConvAttributes attributes = {
      .strides = {1, 2}, .dilations = {2, 1}, .pads = {1, 0, 1, 2}, .group = 2};
  const Tensor plain = result(OF(conv(x[0], x[1], x[2], attributes)), {x0, w, bias});
  Shape offset{2, 12, plain.shape()[2], plain.shape()[3]};
  expect_equal(
      result(OF(deformable_conv(x[0], x[1], x[3], x[2], {}, 1, attributes)), {x0, w, bias, zeros(offset)}),
      plain, 1e-12);
}

TEST(DeformConv, AWholeOffsetMovesThePicture) {
  const Tensor row = f64({1, 1, 4}, {1, 2, 3, 4}), one = f64({1, 1, 1}, {1});
  const Function moved = OF(deformable_conv(x[0], x[1], x[2]));
  expect_values(result(moved, {row, one, f64({1, 1, 4}, {1, 1, 1, 1})}), {2, 3, 4, 0});
  expect_values(result(moved, {row, one, f64({1, 1, 4}, {0.5, 0.25, -1, 9})}), {1.5, 2.25, 2, 0});
}

TEST(DeformConv, Refuses) {
  const Tensor x0 = zeros({1, 2, 3, 3}), w = zeros({1, 2, 2, 2});
  expect_refusal(OF(deformable_conv(x[0], x[1], x[2])), {x0, w, zeros({1, 4, 2, 2})},
                 "input offset is f64[1,4,2,2], expected shape [1,8,2,2]");
  expect_refusal(OF(deformable_conv(x[0], x[1], x[2], {}, {}, 3)), {x0, w, zeros({1, 24, 2, 2})},
                 "attribute 'offset_group' is 3, which does not divide 2 channels");
  expect_refusal(OF(deformable_conv(x[0], x[1], x[2], {}, {}, 1, {.group = 2})), {x0, w, zeros({1, 8, 2, 2})},
                 "do not fit 2 groups");
  expect_refusal(OF(deformable_conv(x[0], x[1], x[2], x[3])), {x0, w, zeros({1, 8, 2, 2}), zeros({2})},
                 "input B is f64[2]");
}

}  // namespace superstep::op::test
