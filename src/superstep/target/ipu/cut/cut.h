// How an operator can be cut into parts that are the same operator on slices of its operands.
//
// A cut goes along one dimension of the work: the samples, the output channels, the rows of an image, the
// columns of a product. It says for every operand which axis follows it; an operand without such an axis goes
// whole to every part. A part needs nothing but its slices, so that a vertex can evaluate the operator's
// definition on them. Along most cuts every part makes results of its own; along a summed one (the inputs of
// a product, what a reduction takes in) each makes a partial result, and partial results are combined after.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "superstep/bsp/graph/interval.h"
#include "superstep/graph/graph.h"
#include "superstep/op/window/window.h"

namespace superstep::target::ipu {

struct CutOperand {
  int axis = -1;           // -1: whole
  std::int64_t chunk = 1;  // elements along the axis a unit
  // Of an input whose units share elements: what each needs, instead of a chunk of its own.
  std::shared_ptr<const std::vector<bsp::Interval>> reads = nullptr;

  // What a range of units has of the axis.
  bsp::Interval of(const bsp::Interval& units) const;
};

// What a cut deals out in a product, for planners.
enum class CutRole : std::uint8_t { other, group, row, output, summed, tap };

struct Cut {
  std::int64_t units = 1;  // what is dealt out
  std::vector<CutOperand> inputs, outputs;
  std::string attribute;  // becomes the number of units of a part (`group` of a grouped convolution)
  CutRole role = CutRole::other;
  bool summed = false;            // parts along it make partial results of the outputs that do not follow it
  int window = -1;                // units are outputs (transposed: inputs) along this axis of Cuts::windows
  int taps = -1;                  // units are positions of the kernel along this axis of Cuts::windows
  std::vector<std::size_t> once;  // inputs that the first part along a summed cut takes alone (a bias)

  bool moves_windows() const { return window >= 0 || taps >= 0; }
};

// How the partial results of summed cuts become one.
enum class Combine : std::uint8_t {
  sum,
  product,
  maximum,
  minimum,
  mean,
  root_of_squares,
  // Of outputs 0 and 1 together: means and variances; the largest or smallest of a line, the first of equals,
  // and where it lies along the one cut that is summed.
  moments,
  place_of_largest,
  place_of_smallest
};
constexpr bool combines_pairs(Combine combine) { return combine >= Combine::moments; }

// Operands that slide: which of them has the positions that windows read.
enum class WindowForm : std::uint8_t {
  none,
  forward,     // input 0 is read by windows of output 0
  transposed,  // output 0 is written by windows of input 0
  gradient     // input 0 is read by windows of input 1; the kernel is the result
};

struct Fused;
struct Operation;
struct Part;
struct PartShape;
struct Cuts;

// What a part has beyond the operator on its slices (part.h): positions that it counts from elsewhere, a
// rule for elements that lie outside it.
using Adapt = std::function<void(const Operation&, const Cuts&, const Part&, PartShape&)>;

struct Cuts {
  std::vector<Cut> axes;  // none: the operator stays whole
  Combine combine = Combine::sum;
  WindowForm form = WindowForm::none;
  bool even = false;     // every part costs by its elements alone: no search is needed
  bool by_cost = false;  // what parts receive decides, even where sums are cut: search
  Adapt adapt = nullptr;
  std::vector<op::Window> windows;  // one for each spatial axis: operands' axes from 2 on
};

// An operator with its types, as the rules see it. Null where an optional operand is left out.
struct Operation {
  const graph::Node* node = nullptr;
  const graph::Attributes* attributes = nullptr;
  std::vector<const graph::ValueType*> inputs, outputs;
  std::vector<const Tensor*> constants;       // of inputs whose elements are known
  std::vector<const graph::Node*> producers;  // of inputs that a node makes
  std::shared_ptr<const Fused> fused;         // what it is instead of the node's operator

  const Shape& input(std::size_t i) const { return inputs[i]->shape; }
  const Shape& output(std::size_t i = 0) const { return outputs[i]->shape; }
  bool has(std::size_t i) const { return i < inputs.size() && inputs[i]; }
};
Operation operation_of(const graph::Graph& graph, const graph::Node& node);

Cuts cuts_of(const Operation& operation);

// Why an operator without cuts stays on one tile.
std::string_view why_whole(std::string_view op);

// Each element of the results needs the elements at its place alone, operands being broadcast.
bool is_pointwise(std::string_view op);

}  // namespace superstep::target::ipu
