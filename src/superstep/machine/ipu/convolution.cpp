#include "superstep/machine/ipu/convolution.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "superstep/machine/ipu/product_search.h"

namespace superstep::machine::ipu {

std::int64_t Convolution::positions() const {
  std::int64_t count = batch;
  for (const Axis& axis : axes) count *= axis.output;
  return count;
}

std::int64_t Convolution::kernel_positions() const {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.kernel;
  return count;
}

double Convolution::macs() const {
  double count = static_cast<double>(groups * in_channels) * static_cast<double>(out_channels * batch);
  for (const Axis& axis : axes)
    count *= static_cast<double>(axis.output * axis.kernel) / static_cast<double>(axis.dilation);
  return count;
}

double Convolution::input_elements() const {
  double count = static_cast<double>(groups * in_channels * batch);
  for (const Axis& axis : axes) count *= static_cast<double>(axis.input);
  return count;
}

double Convolution::weight_elements() const {
  return static_cast<double>(groups * in_channels) * static_cast<double>(out_channels * kernel_positions());
}

double Convolution::output_elements() const {
  return static_cast<double>(groups * out_channels) * static_cast<double>(positions());
}

Convolution matrix_product(std::int64_t groups, std::int64_t m, std::int64_t k, std::int64_t n,
                           ElementType element, ElementType partials) {
  return {.groups = groups,
          .batch = m,
          .in_channels = k,
          .out_channels = n,
          .axes = {},
          .element = element,
          .partials = partials};
}

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

// How many of positions x kernel positions x channels are distinct inputs; the edges of a tile's part
// overlap.
double distinct_share(const Convolution& convolution) {
  constexpr double edges = 1.25;
  const double all =
      static_cast<double>(convolution.positions()) *
      static_cast<double>(convolution.kernel_positions() * convolution.in_channels * convolution.groups);
  return std::min(1.0, edges * convolution.input_elements() / all);
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
  product.gather_share =
      std::min(1.0, 1.25 * static_cast<double>(last.input) / static_cast<double>(last.output * last.kernel));
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
  product.gather_share =
      std::min(1.0, 1.25 * static_cast<double>(last.input) / static_cast<double>(last.output * last.kernel));
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

std::vector<Product> variants(const Convolution& convolution) {
  std::vector<Product> forms;
  if (convolution.kernel_positions() == 1) {
    forms.push_back(collapsed(convolution));
  } else {
    forms.push_back(windowed(convolution));
    const bool dilated = std::any_of(convolution.axes.begin(), convolution.axes.end(),
                                     [](const Axis& axis) { return axis.dilation > 1; });
    if (!dilated) forms.push_back(folded(convolution));
    if (!dilated && convolution.axes.size() > 1 && convolution.axes.back().kernel > 1)
      forms.push_back(folded_last(convolution));
  }
  return forms;
}

std::vector<Product> weight_gradient_variants(const Convolution& convolution) {
  std::vector<Product> forms{weight_gradient(convolution)};
  if (convolution.axes.size() > 1 && convolution.kernel_positions() > 1)
    forms.push_back(weight_gradient_windowed(convolution));
  return forms;
}

void add_combined(std::vector<Product>& forms) {
  const std::size_t count = forms.size();
  for (std::size_t i = 0; i < count; ++i)
    for (std::int64_t factor : {4, 8, 16})
      if (forms[i].groups >= factor && forms[i].outputs * factor <= 16)
        forms.push_back(combined(forms[i], factor));
}

Plan best_of(const Hardware& hardware, const std::vector<Product>& forms) {
  const double whole = static_cast<double>(hardware.tile_bytes);
  for (double limit = hardware.memory_proportion * whole;; limit *= 2) {
    if (limit > 2 * whole) limit = 1e18;
    Plan best;
    for (const Product& form : forms) {
      const Plan plan = search(hardware, form, limit);
      if (plan.tiles > 0 && (best.tiles == 0 || plan.cycles.total() < best.cycles.total())) best = plan;
    }
    if (best.tiles > 0 || limit >= 1e18) return best;
  }
}

}  // namespace

namespace {

Plan find_plan(const Hardware& hardware, const Convolution& forward, Pass pass, const Arrangement& arrangement) {
  std::vector<Product> forms = pass == Pass::weight_gradient ? weight_gradient_variants(forward)
                               : pass == Pass::data_gradient ? variants(data_gradient(forward))
                                                             : variants(forward);
  if (pass != Pass::weight_gradient)
    for (Product& form : forms) {
      form.left.needed |= arrangement.input;
      form.right.needed |= arrangement.weights;
    }
  add_combined(forms);
  Plan plan = best_of(hardware, forms);
  plan.macs = forward.macs();
  const double elements = forward.input_elements() + forward.weight_elements() + forward.output_elements();
  plan.bytes.operands =
      elements * static_cast<double>(bytes_of(forward.element)) / static_cast<double>(hardware.tiles);
  return plan;
}

// Everything a plan depends on.
using Key = std::vector<double>;

Key key_of(const Hardware& h, const Convolution& c, Pass pass, const Arrangement& arrangement) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  Key key{number(h.tiles),           number(h.workers),         number(h.tile_bytes),     number(h.exchange_rate),
          number(h.memcpy_rate),     number(h.coefficient_load_rate), number(h.conv_units_f16),
          number(h.conv_units_f16_f32), number(h.conv_units_f32), number(h.vector_f32),   number(h.vector_f16),
          h.mac_f16,                 h.mac_f16_f32,             h.mac_f32,                h.memory_proportion,
          h.sync_cycles,             h.exchange_setup,          h.exchange_share,         h.program_cycles,
          h.rearrange_base,          h.rearrange_rate,          h.step_cycles,            h.product_bytes,
          number(pass),              number(arrangement.input), number(arrangement.weights), number(c.groups),
          number(c.batch),           number(c.in_channels),     number(c.out_channels),   number(c.element),
          number(c.partials)};
  for (const Axis& axis : c.axes)
    for (std::int64_t value : {axis.input, axis.output, axis.kernel, axis.stride, axis.kernel_step, axis.dilation})
      key.push_back(number(value));
  return key;
}

// Models repeat their layers, and predictions their models.
class PlanCache {
 public:
  bool find(const Key& key, Plan& plan) const {
    const std::shared_lock lock(mutex_);
    const auto found = plans_.find(key);
    if (found == plans_.end()) return false;
    plan = found->second;
    return true;
  }
  void keep(Key key, const Plan& plan) {
    const std::unique_lock lock(mutex_);
    if (plans_.size() >= most_plans) plans_.clear();
    plans_.emplace(std::move(key), plan);
  }

 private:
  static constexpr std::size_t most_plans = 100000;
  mutable std::shared_mutex mutex_;
  std::map<Key, Plan> plans_;
};

}  // namespace

Plan plan_convolution(const Hardware& hardware, const Convolution& forward, Pass pass,
                      const Arrangement& arrangement) {
  static PlanCache cache;
  Key key = key_of(hardware, forward, pass, arrangement);
  Plan plan;
  if (cache.find(key, plan)) return plan;
  plan = find_plan(hardware, forward, pass, arrangement);
  cache.keep(std::move(key), plan);
  return plan;
}

}  // namespace superstep::machine::ipu
