#include "superstep/machine/ipu/product_forms.h"

#include <algorithm>

#include "superstep/base/integers.h"

namespace superstep::machine::ipu {
namespace {

Product base_of(const Convolution& convolution) {
  Product product;
  product.groups = convolution.groups;
  product.outputs = convolution.out_channels;
  product.inputs = convolution.in_channels;
  product.element = convolution.element;
  product.partials = convolution.partials;
  return product;
}

// A kernel of one position: batch and field are one axis. Inputs that the stride skips are not gathered.
Product collapsed(const Convolution& convolution) {
  Product product = base_of(convolution);
  std::int64_t rows = convolution.batch;
  for (const Axis& axis : convolution.axes) rows *= ceil_div(axis.output, axis.dilation);
  product.rows = {rows};
  return product;
}

Product windowed(const Convolution& convolution) {
  Product product = base_of(convolution);
  product.rows = {convolution.batch};
  for (const Axis& axis : convolution.axes) product.rows.push_back(axis.output);
  product.window = convolution.axes;
  product.can_swap = false;
  return product;
}

// How much more than its distinct inputs a tile's part of a convolution reads: the edges of neighbouring
// parts overlap. No source: chosen while looking at the GC200 rows of simulated operators (docs/machines.md).
constexpr double edge_overlap = 1.25;

// The share of what is gathered along the last axis that is distinct.
double distinct_share_of(const Axis& axis) {
  return std::min(
      1.0, edge_overlap * static_cast<double>(axis.input) / static_cast<double>(axis.output * axis.kernel));
}

// How many of positions x kernel positions x channels are distinct inputs.
double distinct_share(const Convolution& convolution) {
  const double all =
      static_cast<double>(convolution.positions()) *
      static_cast<double>(convolution.kernel_positions() * convolution.in_channels * convolution.groups);
  return std::min(1.0, edge_overlap * convolution.input_elements() / all);
}

// The kernel folded into the inputs: a product over kernel positions x channels.
Product folded(const Convolution& convolution) {
  Product product = collapsed(convolution);
  product.inputs *= convolution.kernel_positions();
  product.gather_share = distinct_share(convolution);
  product.left = {
      .needed = true, .atom = std::min<std::int64_t>(8, 2 * convolution.in_channels), .expands = true};
  product.can_swap = false;
  return product;
}

// The last axis folded, the others kept: its kernel positions become inputs.
Product folded_last(const Convolution& convolution) {
  Product product = base_of(convolution);
  const Axis& last = convolution.axes.back();
  product.inputs *= last.kernel;
  product.rows = {convolution.batch, last.output};
  for (std::size_t i = 0; i + 1 < convolution.axes.size(); ++i) {
    product.rows.push_back(convolution.axes[i].output);
    product.window.push_back(convolution.axes[i]);
  }
  product.gather_share = distinct_share_of(last);
  product.left = {
      .needed = true, .atom = std::min<std::int64_t>(8, 2 * convolution.in_channels), .expands = true};
  product.can_swap = false;
  return product;
}

// The gradient with respect to the weights: rows are input channels x kernel positions, terms the positions
// of the output. Both operands lie with their channels innermost, where this product wants positions.
Product weight_gradient(const Convolution& convolution) {
  Product product = base_of(convolution);
  product.rows = {convolution.in_channels * convolution.kernel_positions()};
  product.inputs = convolution.positions();
  const bool window = convolution.kernel_positions() > 1;
  product.gather_share = window ? distinct_share(convolution) : 1.0;
  product.left = {.needed = true, .atom = 2, .expands = window};
  product.right = {.needed = true, .atom = 2, .expands = false};
  product.can_swap = !window;
  return product;
}

// The same with the window kept along the first axes: output positions are kernel positions there, and the
// last axis is folded. What the left operand repeats is the last kernel axis alone.
Product weight_gradient_windowed(const Convolution& convolution) {
  Product product = base_of(convolution);
  const Axis& last = convolution.axes.back();
  product.inputs = convolution.batch * last.output;
  product.rows = {convolution.in_channels, last.kernel};
  for (std::size_t i = 0; i + 1 < convolution.axes.size(); ++i) {
    const Axis& axis = convolution.axes[i];
    product.rows.push_back(axis.kernel);
    product.window.push_back({.input = axis.input,
                              .output = axis.kernel,
                              .kernel = axis.output,
                              .stride = axis.kernel_step,
                              .kernel_step = axis.stride});
  }
  product.gather_share = distinct_share_of(last);
  product.left = {.needed = true, .atom = 2, .expands = last.kernel > 1};
  product.right = {.needed = true, .atom = 2, .expands = false};
  product.can_swap = false;
  return product;
}

// Where the forward pass gave one position along an axis, each position of the gradient meets one kernel
// position alone: that axis belongs to the channels.
Convolution data_gradient(const Convolution& forward) {
  Convolution back = forward;
  std::swap(back.in_channels, back.out_channels);
  for (const Axis& axis : forward.axes)
    if (axis.output == 1) back.out_channels *= axis.kernel;
  std::erase_if(back.axes, [](const Axis& axis) { return axis.output == 1; });
  for (Axis& axis : back.axes) {
    std::swap(axis.input, axis.output);
    std::swap(axis.stride, axis.dilation);
  }
  return back;
}

// Several groups of few channels done as one group of more, most of whose weights are zero.
Product combined(Product product, std::int64_t factor) {
  product.groups = ceil_div(product.groups, factor);
  product.inputs *= factor;
  product.outputs *= factor;
  return product;
}

bool is_dilated(const Convolution& convolution) {
  return std::any_of(convolution.axes.begin(), convolution.axes.end(),
                     [](const Axis& axis) { return axis.dilation > 1; });
}

std::vector<ProductForm> forms(const Convolution& convolution) {
  if (convolution.kernel_positions() == 1) return {ProductForm::collapsed};
  std::vector<ProductForm> list{ProductForm::windowed};
  if (is_dilated(convolution)) return list;
  list.push_back(ProductForm::folded);
  if (convolution.axes.size() > 1 && convolution.axes.back().kernel > 1)
    list.push_back(ProductForm::folded_last);
  return list;
}

std::vector<ProductForm> weight_gradient_forms(const Convolution& convolution) {
  std::vector<ProductForm> list{ProductForm::weight_gradient};
  if (convolution.axes.size() > 1 && convolution.kernel_positions() > 1)
    list.push_back(ProductForm::weight_gradient_windowed);
  return list;
}

Product formed(const Convolution& convolution, ProductForm form) {
  switch (form) {
    case ProductForm::collapsed: return collapsed(convolution);
    case ProductForm::windowed: return windowed(convolution);
    case ProductForm::folded: return folded(convolution);
    case ProductForm::folded_last: return folded_last(convolution);
    case ProductForm::weight_gradient: return weight_gradient(convolution);
    case ProductForm::weight_gradient_windowed: return weight_gradient_windowed(convolution);
  }
  return collapsed(convolution);
}

// The convolution that a pass does: the gradient by the data is one of the results' gradient.
Convolution done(const Convolution& forward, Pass pass) {
  return pass == Pass::data_gradient ? data_gradient(forward) : forward;
}

}  // namespace

Product product_of(const Convolution& forward, Pass pass, const Arrangement& arrangement, ProductForm form,
                   std::int64_t factor) {
  Product product = formed(done(forward, pass), form);
  if (pass != Pass::weight_gradient) {
    product.left.needed |= arrangement.input;
    product.right.needed |= arrangement.weights;
  }
  return factor > 1 ? combined(std::move(product), factor) : product;
}

std::vector<FormedProduct> forms_of(const Convolution& forward, Pass pass, const Arrangement& arrangement) {
  const std::vector<ProductForm> kinds =
      pass == Pass::weight_gradient ? weight_gradient_forms(forward) : forms(done(forward, pass));
  std::vector<FormedProduct> list;
  for (const ProductForm form : kinds)
    list.push_back({form, 1, product_of(forward, pass, arrangement, form, 1)});
  const std::size_t count = list.size();
  for (std::size_t i = 0; i < count; ++i)
    for (const std::int64_t factor : {4, 8, 16})
      if (list[i].product.groups >= factor && list[i].product.outputs * factor <= 16)
        list.push_back({list[i].form, factor, combined(list[i].product, factor)});
  return list;
}

}  // namespace superstep::machine::ipu
