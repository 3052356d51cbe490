// Where every value of a graph lies: which memory it shares, and with which strides.
//
// Images go to memory as [height][width][micro-batch][channels], so that convolutions are sums of matrix
// products over long rows (kernels/image.h). Reshapes, transposes and their like move nothing: their output
// is another view of their input's memory, wherever strides can say so. The choice is made for whole
// families of views at once: a product whose result is reshaped into an image writes that image's layout.
#pragma once

#include <optional>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/cpu/plan/strides.h"

namespace superstep::target::cpu {

struct View {
  graph::ValueId root;      // the value that owns the memory
  std::int64_t offset = 0;  // in elements
  Strides strides;          // in elements, one a dimension
};

struct Layout {
  std::vector<View> views;      // by value
  std::vector<bool> is_alias;   // by node: the node moves nothing
  std::vector<bool> is_planar;  // by node: a convolution whose images are planes (planar.h)
};

// `constants` and states are row-major, as the user stores them; inputs take the layout their consumers
// want (the plan copies them in).
Layout assign_layout(const graph::Graph& graph);

// True for operators whose output is a rearrangement of input 0 without arithmetic.
bool is_view_operator(const graph::Node& node);

// Where the outputs of a Slice or a Split with constant places lie in its input: an offset in elements and a
// step an axis. Nothing where steps are negative or a place is not constant.
struct Cut {
  std::int64_t offset = 0;
  Strides steps;
};
std::optional<std::vector<Cut>> cuts_of(const graph::Graph& graph, const graph::Node& node,
                                        const Strides& strides);

// The order of dimensions, outermost first, of an image of this rank: spatial dimensions, batch, channels.
std::vector<int> image_order(int rank);

}  // namespace superstep::target::cpu
