// Convolutions of a few channels whose images are planes: [batch][channels][height][width], as ONNX has them.
#pragma once

#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::target::cpu {

// By node: whether it is a convolution of so few channels, and by such a window, that kernels go along its
// rows (kernels/convolution/planar.h), or the gradient of such a one by its weights (planar_gradient.h).
std::vector<bool> may_be_planar(const graph::Graph& graph);

// The images of a convolution, or of a gradient by weights: what the window goes over, and its result or the
// cotangent of that.
struct WindowedImages {
  graph::ValueId x, y;
};
WindowedImages windowed_images(const graph::Node& node);

// Those of them that nobody wants otherwise: neither what they read or make nor what is made of it element by
// element, or moved, is one of the values that others want as images with channels innermost.
std::vector<bool> planar_convolutions(const graph::Graph& graph, const std::vector<bool>& candidates,
                                      const std::vector<bool>& wants_image);

}  // namespace superstep::target::cpu
