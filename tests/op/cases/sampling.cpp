#include "superstep/op/window/sampling.h"

#include "superstep/op/elementwise/arithmetic.h"
#include "superstep/op/window/fold.h"
#include "superstep/op/window/region.h"
#include "tests/op/cases/case.h"

namespace superstep::op::test {
namespace {

// Points inside and outside the picture, away from elements and their edges, where weights have kinks.
Case sampled(const char* name, const Shape& picture, const Shape& grid, GridSampleAttributes attributes,
             Smooth smooth = Smooth::twice) {
  return {"GridSample",
          name,
          OF(grid_sample(x[0], x[1], attributes)),
          {random_tensor(picture, 210), uniform_tensor(grid, 211, -1.3, 1.3)},
          smooth};
}

// Two overlapping regions of two pictures; corners away from elements.
Tensor regions() { return f64({3, 4}, {0.7, 1.1, 5.6, 6.3, 2.2, 0.3, 7.9, 4.4, -0.6, 2.8, 3.1, 8.7}); }
Tensor pictures() { return i64({3}, {0, 1, 0}); }

Case aligned(const char* name, RoiAlignAttributes attributes, bool reduced = true) {
  return {"RoiAlign",
          name,
          OF(roi_align(x[0], x[1], x[2], attributes)),
          {random_tensor({2, 2, 8, 7}, 212), regions(), pictures()},
          Smooth::twice,
          reduced};
}

std::vector<Case> grid_cases() {
  const Shape picture{2, 2, 4, 5}, grid{2, 3, 2, 2}, line{1, 2, 6}, line_grid{1, 4, 1};
  const Shape volume{1, 2, 3, 4, 3}, volume_grid{1, 2, 2, 2, 3};
  return {
      sampled("linear", picture, grid, {}),
      sampled("linear, align corners", picture, grid, {.align_corners = true}),
      sampled("linear, border", picture, grid, {.padding = "border"}),
      sampled("linear, reflection", picture, grid, {.padding = "reflection"}),
      sampled("nearest", picture, grid, {.mode = "nearest"}),
      sampled("nearest, reflection", picture, grid, {.mode = "nearest", .padding = "reflection"}),
      sampled("cubic", picture, grid, {.mode = "cubic"}),
      sampled("cubic, border, align corners", picture, grid,
              {.mode = "cubic", .padding = "border", .align_corners = true}),
      sampled("cubic, reflection", picture, grid, {.mode = "cubic", .padding = "reflection"}),
      sampled("one axis, cubic", line, line_grid, {.mode = "cubic"}),
      sampled("three axes, linear", volume, volume_grid, {.align_corners = true}),
      sampled("three axes, nearest", volume, volume_grid, {.mode = "nearest", .padding = "border"}),
      {"GridSample",
       "integers",
       OF(grid_sample(x[0], x[1])),
       {i64({1, 1, 2, 2}, {10, 20, 30, 40}), f64({1, 1, 2, 2}, {0.1, 0.2, -0.4, 0.3})},
       Smooth::no},
      {"AffineGrid", "two axes", OF(affine_grid(x[0], {2, 1, 3, 4})), {random_tensor({2, 2, 3}, 213)}},
      {"AffineGrid",
       "three axes, align corners",
       OF(affine_grid(x[0], {1, 1, 2, 1, 3}, true)),
       {random_tensor({1, 3, 4}, 214)}},
  };
}

std::vector<Case> region_cases() {
  const Tensor picture = random_tensor({2, 2, 8, 7}, 215);
  const Tensor boxes = f64({1, 4, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 0, -0.1, 1, 0.9, 0, 10, 1, 11});
  const Tensor scores = f64({1, 2, 4}, {0.9, 0.75, 0.6, 0.95, 0.1, 0.8, 0.3, 0.2});
  const Tensor five = f64({2, 5}, {0, 0.7, 1.1, 5.6, 6.3, 1, 2.2, 0.3, 6.9, 4.4});
  return {
      aligned("two samples per bin", {.height = 2, .width = 3, .sampling_ratio = 2}),
      aligned("whole pixels",
              {.height = 2, .width = 2, .sampling_ratio = 3, .spatial_scale = 0.9, .half_pixel = false}),
      // Two samples of a bin can be equal in 8 bits.
      aligned("largest", {.height = 2, .width = 2, .sampling_ratio = 2, .mode = "max"}, false),
      {"RoiAlign",
       "samples by size",
       [](Builder& b, std::span<const Var> x) {
         return std::vector{
             roi_align(x[0], b.constant(regions()), b.constant(pictures()), {.height = 2, .width = 3})};
       },
       {picture},
       Smooth::twice,
       false},
      {"RoiAlign",
       "largest, samples by size",
       [](Builder& b, std::span<const Var> x) {
         return std::vector{roi_align(x[0], b.constant(regions()), b.constant(pictures()),
                                      {.height = 2, .width = 3, .half_pixel = false, .mode = "max"})};
       },
       {picture},
       Smooth::twice,
       false},
      {"MaxRoiPool", "two regions", OF(max_roi_pool(x[0], x[1], {3, 2})), {picture, five}},
      {"MaxRoiPool", "scaled", OF(max_roi_pool(x[0], x[1], {2, 2}, 0.5)), {picture, five}},
      {"NonMaxSuppression",
       "two classes",
       OF(non_max_suppression(b.constant(boxes), b.constant(scores),
                              {.max_output = 3, .overlap_threshold = 0.5, .score_threshold = 0.15})),
       {},
       Smooth::no},
      {"superstep.KeptBoxes",
       "more room than boxes",
       [](Builder& b, std::span<const Var> x) {
         return b.node("superstep.KeptBoxes", x, {{"bound", std::int64_t{5}}}, 2);
       },
       {boxes, scores, i64({1}, {3}), f64({1}, {0.5}), f64({1}, {0.15})},
       Smooth::no},
  };
}

std::vector<Case> fold_cases() {
  const Tensor blocks = random_tensor({2, 8, 6}, 216);
  return {
      {"Col2Im", "overlapping", OF(col2im(x[0], {3, 4}, {2, 2})), {blocks}},
      {"Col2Im",
       "strides, pads and dilations",
       OF(col2im(x[0], {5, 4}, {2, 2}, {.strides = {2, 1}, .dilations = {2, 3}, .pads = {1, 0, 1, 1}})),
       {random_tensor({1, 4, 6}, 217)}},
      {"Col2Im", "one axis", OF(col2im(x[0], {7}, {2})), {random_tensor({1, 4, 6}, 218)}},
      {"MaxUnpool",
       "windows",
       OF(max_unpool(x[0], x[1], {.kernel_shape = {2, 2}, .strides = {2, 2}})),
       {random_tensor({1, 1, 2, 2}, 219), i64({1, 1, 2, 2}, {1, 6, 8, 15})}},
      {"MaxUnpool",
       "a larger shape",
       OF(max_unpool(x[0], x[1], {.kernel_shape = {2}, .strides = {2}, .pads = {1, 0}}, {1, 2, 5})),
       {random_tensor({1, 2, 2}, 220), i64({1, 2, 2}, {0, 2, 3, 5})}},
      {"CenterCropPad", "crop and pad", OF(center_crop_pad(x[0], {2, 7})), {random_tensor({5, 4}, 221)}},
      {"CenterCropPad", "one axis", OF(center_crop_pad(x[0], {3}, {-1})), {random_tensor({2, 4, 6}, 222)}},
  };
}

std::vector<Case> deformable_cases() {
  const Tensor x0 = random_tensor({2, 4, 5, 4}, 223), w = random_tensor({6, 2, 2, 3}, 224);
  // Offsets that keep points off whole positions.
  const Tensor offset = uniform_tensor({2, 24, 4, 2}, 225, 0.1, 0.9),
               mask = uniform_tensor({2, 12, 4, 2}, 226, 0.2, 1);
  const Tensor bias = random_tensor({6}, 227);
  return {
      {"DeformConv",
       "groups, bias and mask",
       OF(deformable_conv(x[0], x[1], x[2], x[3], x[4], 2, {.group = 2})),
       {x0, w, offset, bias, mask}},
      {"DeformConv",
       "strides, pads and dilations",
       OF(deformable_conv(x[0], x[1], x[2], {}, {}, 1,
                          {.strides = {2, 1}, .dilations = {1, 2}, .pads = {1, 0, 0, 1}})),
       {random_tensor({1, 2, 5, 4}, 228), random_tensor({3, 2, 2, 2}, 229),
        uniform_tensor({1, 8, 3, 3}, 230, -0.9, -0.1)}},
      {"DeformConv",
       "one axis",
       OF(deformable_conv(x[0], x[1], x[2])),
       {random_tensor({1, 2, 6}, 231), random_tensor({2, 2, 3}, 232),
        uniform_tensor({1, 3, 4}, 233, 0.1, 0.9)}},
  };
}

}  // namespace

std::vector<Case> sampling_cases() {
  std::vector<Case> cases;
  for (auto family : {grid_cases, region_cases, fold_cases, deformable_cases})
    for (Case& item : family()) cases.push_back(std::move(item));
  return cases;
}

}  // namespace superstep::op::test
