// Regions of interest in pictures: pooling over them, and choosing among overlapping ones.
#pragma once

#include <string>

#include "superstep/op/core/definition.h"

namespace superstep::op {

struct RoiAlignAttributes {
  std::int64_t height = 1, width = 1;  // of the result
  // Samples a bin and axis; 0: as many as a bin has elements, rounded up, for which rois must be constant.
  std::int64_t sampling_ratio = 0;
  double spatial_scale = 1;  // from the coordinates of rois to elements of x
  bool half_pixel = true;    // coordinates are moved by half an element
  std::string mode = "avg";  // or max, of the elements read times their weights
};

// The mean of x [N, C, H, W] at points of each bin of each region (He et al., Mask R-CNN, arXiv 1703.06870):
// rois [R, 4] as x1, y1, x2, y2; pictures i64 [R] says which of x's batch: [R, C, height, width].
Var roi_align(Var x, Var rois, Var pictures, const RoiAlignAttributes& attributes);

// The largest element of each bin of each region; rois [R, 5] as picture, x1, y1, x2, y2, ends included.
Var max_roi_pool(Var x, Var rois, const std::vector<std::int64_t>& pooled_shape, double spatial_scale = 1);

struct NonMaxSuppressionAttributes {
  std::int64_t max_output = 0;   // boxes a class and picture
  double overlap_threshold = 0;  // intersection over union above which the lower score goes
  double score_threshold = -3e38;
  bool centred = false;  // boxes as x, y of the centre, width, height; else two corners y, x, y, x
};
// Of boxes [N, B, 4] with scores [N, classes, B] those kept: i64 [kept, 3] of picture, class, box. Shapes are
// static, so that boxes and scores must be constant.
Var non_max_suppression(Var boxes, Var scores, const NonMaxSuppressionAttributes& attributes);

std::span<const Definition> region_pooling_operators();  // RoiAlign MaxRoiPool
std::span<const Definition> detection_operators();       // NonMaxSuppression KeptBoxes

}  // namespace superstep::op
