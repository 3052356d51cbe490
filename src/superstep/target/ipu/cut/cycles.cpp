#include "superstep/target/ipu/cut/cycles.h"

#include <algorithm>
#include <cmath>

#include "superstep/base/integers.h"
#include "superstep/machine/ipu/vertex_cycles.h"

namespace superstep::target::ipu {
namespace {

using machine::ipu::AmpForm;
using machine::ipu::AmpWindow;
using machine::ipu::AmpWork;
using machine::ipu::Hardware;

std::int64_t count(const graph::ValueType& type) { return type.shape.element_count(); }

// Channels of a group that a pass of the matrix unit takes: 16 in f16, 8 in f32.
AmpForm form_of(const Hardware& hardware, ElementType element) {
  AmpForm form;
  form.element = element == ElementType::f16 ? ElementType::f16 : ElementType::f32;
  form.partials = ElementType::f32;
  form.units = hardware.conv_units(form.element, form.partials);
  return form;
}

AmpWork work_of(const AmpForm& form, std::int64_t inputs, std::int64_t outputs) {
  AmpWork work;
  work.in_channels_per_group = form.element == ElementType::f16 ? 16 : 8;
  work.out_channels_per_group = form.units;
  work.in_groups = ceil_div(std::max<std::int64_t>(inputs, 1), work.in_channels_per_group);
  work.out_groups = ceil_div(std::max<std::int64_t>(outputs, 1), work.out_channels_per_group);
  return work;
}

// rows x inputs by inputs x columns. The matrix unit pads channels to whole groups; the rows and columns may
// change places, and tiny products go without it.
std::int64_t product_cycles(const Hardware& hardware, ElementType element, std::int64_t rows,
                            std::int64_t inputs, std::int64_t columns) {
  const AmpForm form = form_of(hardware, element);
  const auto unit = [&](std::int64_t positions, std::int64_t channels) {
    return machine::ipu::amp_1x1_cycles(hardware, form, work_of(form, inputs, channels), positions);
  };
  machine::ipu::MacWork mac;
  mac.out_channels = columns;
  mac.in_channels = inputs;
  mac.row_positions = rows;
  const std::int64_t plain = machine::ipu::horizontal_mac_cycles(hardware, form.element, form.partials, mac);
  return std::min({unit(rows, columns), unit(columns, rows), plain});
}

std::int64_t convolution_cycles(const Hardware& hardware, ElementType element, std::int64_t group,
                                std::int64_t positions, std::int64_t kernel, std::int64_t inputs,
                                std::int64_t outputs) {
  if (kernel == 1) return group * product_cycles(hardware, element, positions, inputs, outputs);
  const AmpForm form = form_of(hardware, element);
  AmpWindow window;
  window.kernel_inner = kernel;
  window.row_positions = positions;
  AmpWork work = work_of(form, inputs, outputs);
  work.conv_groups = group;
  machine::ipu::MacWork mac;
  mac.conv_groups = group;
  mac.out_channels = outputs;
  mac.in_channels = inputs;
  mac.kernel_positions = kernel;
  mac.row_positions = positions;
  return std::min(machine::ipu::amp_nx1_cycles(hardware, form, work, window),
                  machine::ipu::horizontal_mac_cycles(hardware, form.element, form.partials, mac));
}

std::int64_t spatial(const Shape& shape) {
  std::int64_t product = 1;
  for (int i = 2; i < shape.rank(); ++i) product *= shape[i];
  return product;
}

// `per_vector` cycles for a vector of elements: load, work, store.
std::int64_t pointwise(const Hardware& hardware, ElementType element, std::int64_t n,
                       std::int64_t per_vector) {
  const std::int64_t vector =
      std::max<std::int64_t>(1, element == ElementType::f16 || element == ElementType::f32
                                    ? hardware.vector_width(element)
                                    : 8 / machine::ipu::bytes_of(element) / 2);
  const std::int64_t fixed = element == ElementType::f16 ? 32 : 41;
  return machine::ipu::elementwise_cycles(hardware, n, vector, per_vector, fixed, 2);
}

// Cycles of a vector of two f32 elements in the auxiliary pipeline. GU: transcendental functions take several
// instructions an element and are not vectors in f32.
std::int64_t vector_cycles(op::Effort effort) {
  switch (effort) {
    case op::Effort::instruction: return 1;
    case op::Effort::function: return 10;
    case op::Effort::functions: return 30;
  }
  return 1;
}

std::int64_t outputs_of(const PartTypes& t) { return t.outputs.empty() ? 0 : count(t.outputs[0]); }
ElementType element_of(const PartTypes& t) {
  return t.outputs.empty() ? ElementType::f32 : t.outputs[0].element;
}
std::int64_t largest_input(const PartTypes& t) {
  std::int64_t largest = 0;
  for (const graph::ValueType& type : t.inputs) largest = std::max(largest, count(type));
  return largest;
}

// An operation on every element of the largest operand.
std::int64_t element_cycles(const Hardware& hardware, const PartTypes& t, std::int64_t per_vector) {
  return pointwise(hardware, element_of(t), std::max(outputs_of(t), largest_input(t)), per_vector);
}

std::int64_t indices_of(const PartTypes& t) {
  return t.inputs.size() > 1 ? std::max<std::int64_t>(count(t.inputs[1]), 1) : 1;
}

// Elements each picked by an index of its own, or put there into a copy of the data (machine/ipu's
// plan_pick).
std::int64_t pick_cycles(const Hardware& hardware, const PartTypes& t, bool copies) {
  const std::int64_t copied =
      copies ? count(t.outputs[0]) * machine::ipu::bytes_of(t.outputs[0].element) / hardware.memcpy_rate : 0;
  return copied + pointwise(hardware, ElementType::f32, indices_of(t), 8);
}

// Rows picked one after the other by each worker.
std::int64_t gathered_rows(const Hardware& hardware, const PartTypes& t, std::int64_t indices) {
  const std::int64_t outputs = count(t.outputs[0]);
  return hardware.workers * machine::ipu::gather_worker_cycles(ceil_div(indices, hardware.workers),
                                                               ceil_div(outputs, indices),
                                                               hardware.vector_width(ElementType::f32));
}

// The data is copied; then every worker walks over all indices and takes the rows that are its own.
std::int64_t scattered_rows(const Hardware& hardware, const PartTypes& t, std::int64_t indices) {
  const std::int64_t updates = t.inputs.size() > 2 ? count(t.inputs[2]) : count(t.outputs[0]);
  const std::int64_t copied =
      count(t.outputs[0]) * machine::ipu::bytes_of(t.outputs[0].element) / hardware.memcpy_rate;
  return copied +
         hardware.workers * machine::ipu::gather_worker_cycles(indices, ceil_div(updates, indices),
                                                               hardware.vector_width(ElementType::f32));
}

// Rows that are added to zeros by index, one after the other by each worker, which takes the rows of the
// result that are its own.
std::int64_t added_rows(const Hardware& hardware, const PartTypes& t, std::int64_t added) {
  const std::int64_t indices = indices_of(t), cleared = count(t.outputs[0]);
  return cleared * machine::ipu::bytes_of(t.outputs[0].element) / hardware.memcpy_rate +
         hardware.workers * machine::ipu::gather_worker_cycles(indices, ceil_div(added, indices),
                                                               hardware.vector_width(ElementType::f32));
}

// Windows over vectors of positions: a load and the work for each element of a window (machine/ipu's form).
std::int64_t window_cycles(const Hardware& hardware, const PartTypes& t, bool backward, bool maximum) {
  const std::int64_t small = count(backward ? t.inputs[0] : t.outputs[0]),
                     large = std::max<std::int64_t>(1, count(backward ? t.outputs[0] : t.inputs[0]));
  double window =
      std::max(1.0, static_cast<double>(large) / static_cast<double>(std::max<std::int64_t>(1, small)));
  if (t.attributes.has("kernel_shape")) {
    window = 1;
    for (const std::int64_t extent : t.attributes.integers("kernel_shape"))
      window *= static_cast<double>(extent);
  }
  if (backward) window *= static_cast<double>(small) / static_cast<double>(large);
  const std::int64_t width =
      t.outputs[0].element == ElementType::f16 ? hardware.vector_f16 : hardware.vector_f32;
  const double vectors =
      static_cast<double>(ceil_div(ceil_div(backward ? large : small, hardware.workers), width));
  const double worker = 50 + vectors * (12 + window * (backward && maximum ? 11 : 6));
  return hardware.workers * static_cast<std::int64_t>(worker);
}

// A step of a recurrent cell: the gates of `samples` from inputs and state.
std::int64_t cell_cycles(const Hardware& hardware, ElementType element, std::int64_t samples,
                         std::int64_t width, std::int64_t gates) {
  return product_cycles(hardware, element, samples, width, gates) +
         pointwise(hardware, element, samples * gates, 20);
}

std::int64_t cells_cycles(const Hardware& hardware, const PartTypes& t, bool gradient) {
  const Shape &x = t.inputs[0].shape, &w = t.inputs[1].shape, &r = t.inputs[2].shape;
  const bool batch_first = t.attributes.integer("layout", 0) != 0;
  const std::int64_t steps = x[batch_first ? 1 : 0], samples = x[batch_first ? 0 : 1];
  const std::int64_t width = x[2] + r[2], gates = w[1];
  const ElementType element = t.inputs[0].element;
  std::int64_t step = cell_cycles(hardware, element, samples, width, gates);
  if (gradient)  // the gates again; then by inputs and state, and by weights
    step += product_cycles(hardware, element, samples, gates, width) +
            product_cycles(hardware, element, gates, samples, width) +
            pointwise(hardware, element, samples * gates, 20);
  return w[0] * steps * step;
}

// Elements that a position of the result is made of, along all axes.
std::int64_t resize_taps(const PartTypes& t) {
  const std::string mode = t.attributes.text("mode", "nearest");
  const std::int64_t along = mode == "cubic" ? 4 : mode == "linear" ? 2 : 1;
  std::int64_t taps = 1;
  for (int axis = 2; axis < t.outputs[0].shape.rank(); ++axis) taps *= along;
  return taps;
}

// Vectors of indices, each of which names a row.
std::int64_t vectors_of(const PartTypes& t) {
  const Shape& vectors = t.inputs[1].shape;
  return std::max<std::int64_t>(1, indices_of(t) / std::max<std::int64_t>(1, vectors[vectors.rank() - 1]));
}

}  // namespace

std::int64_t conv_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape &w = t.inputs[1].shape, &y = t.outputs[0].shape;
  const std::int64_t group = t.attributes.integer("group", 1);
  return convolution_cycles(hardware, t.inputs[0].element, group, y[0] * spatial(y), spatial(w), w[1],
                            w[0] / group);
}

std::int64_t conv_transpose_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape &x = t.inputs[0].shape, &w = t.inputs[1].shape;
  const std::int64_t group = t.attributes.integer("group", 1);
  return convolution_cycles(hardware, t.inputs[0].element, group, x[0] * spatial(x), spatial(w), w[0] / group,
                            w[1]);
}

// Positions are what is summed over: a product of [outputs, positions] by [positions, inputs] a kernel place.
std::int64_t conv_weight_gradient_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape &dy = t.inputs[1].shape, &w = t.outputs[0].shape;
  const std::int64_t group = t.attributes.integer("group", 1);
  return group * spatial(w) *
         product_cycles(hardware, t.inputs[0].element, w[0] / group, dy[0] * spatial(dy), w[1]);
}

std::int64_t matmul_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape& a = t.inputs[0].shape;
  const std::int64_t inputs = a.rank() > 0 ? a[a.rank() - 1] : 1, rows = a.rank() > 1 ? a[a.rank() - 2] : 1;
  const std::int64_t outputs = count(t.outputs[0]);
  const Shape& out = t.outputs[0].shape;
  const std::int64_t columns = t.inputs[1].shape.rank() > 1 && out.rank() > 0 ? out[out.rank() - 1] : 1;
  const std::int64_t products =
      std::max<std::int64_t>(1, outputs / std::max<std::int64_t>(1, rows * columns));
  return products * product_cycles(hardware, t.inputs[0].element, rows, inputs, columns);
}

std::int64_t gemm_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape &a = t.inputs[0].shape, &y = t.outputs[0].shape;
  const std::int64_t inputs = a[t.attributes.integer("transA", 0) != 0 ? 0 : 1];
  return product_cycles(hardware, t.inputs[0].element, y[0], inputs, y[1]);
}

std::int64_t reduction_cycles(const Hardware& hardware, const PartTypes& t) {
  const std::int64_t outputs = std::max<std::int64_t>(outputs_of(t), 1);
  const ElementType element =
      !t.inputs.empty() && t.inputs[0].element == ElementType::f16 ? ElementType::f16 : ElementType::f32;
  return machine::ipu::reduce_cycles(hardware, outputs, ceil_div(largest_input(t), outputs), element);
}

// A mean and a variance are two sums of what is loaded.
std::int64_t channel_moments_cycles(const Hardware& hardware, const PartTypes& t) {
  return 2 * reduction_cycles(hardware, t);
}
// The product with the centred operand is a pass before its sum.
std::int64_t channel_sums_cycles(const Hardware& hardware, const PartTypes& t) {
  return pointwise(hardware, element_of(t), largest_input(t), 2) + 2 * reduction_cycles(hardware, t);
}

std::int64_t arg_cycles(const Hardware& hardware, const PartTypes& t) {
  const std::int64_t outputs = std::max<std::int64_t>(outputs_of(t), 1);
  return machine::ipu::arg_cycles(hardware, outputs, ceil_div(largest_input(t), outputs));
}
// The best alone is found without an order.
std::int64_t top_k_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape &x = t.inputs[0].shape, &y = t.outputs[0].shape;
  const int axis = normalize_axis(t.attributes.integer("axis", -1), x.rank());
  if (y[axis] == 1) return arg_cycles(hardware, t);
  return element_cycles(hardware, t, vector_cycles(op::traits_of("TopK").effort));
}

std::int64_t pooling_cycles(const Hardware& hardware, const PartTypes& t) {
  return window_cycles(hardware, t, false, false);
}
std::int64_t max_pool_gradient_cycles(const Hardware& hardware, const PartTypes& t) {
  return window_cycles(hardware, t, true, true);
}
std::int64_t average_pool_gradient_cycles(const Hardware& hardware, const PartTypes& t) {
  return window_cycles(hardware, t, true, false);
}

std::int64_t gather_cycles(const Hardware& hardware, const PartTypes& t) {
  return gathered_rows(hardware, t, indices_of(t));
}
std::int64_t gather_nd_cycles(const Hardware& hardware, const PartTypes& t) {
  return gathered_rows(hardware, t, vectors_of(t));
}
std::int64_t scatter_nd_cycles(const Hardware& hardware, const PartTypes& t) {
  return scattered_rows(hardware, t, vectors_of(t));
}
std::int64_t segment_sum_cycles(const Hardware& hardware, const PartTypes& t) {
  return added_rows(hardware, t, count(t.inputs[0]));
}
// As a sum of the rows that it reads: the product with the weight is in the same instruction.
std::int64_t sparse_product_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape& data = t.inputs[0].shape;
  return added_rows(hardware, t, indices_of(t) * data[data.rank() - 1]);
}
std::int64_t gather_elements_cycles(const Hardware& hardware, const PartTypes& t) {
  return pick_cycles(hardware, t, false);
}
std::int64_t scatter_elements_cycles(const Hardware& hardware, const PartTypes& t) {
  return pick_cycles(hardware, t, true);
}

std::int64_t resize_cycles(const Hardware& hardware, const PartTypes& t) {
  return pointwise(hardware, element_of(t), outputs_of(t), resize_taps(t));
}
std::int64_t resize_gradient_cycles(const Hardware& hardware, const PartTypes& t) {
  return pointwise(hardware, element_of(t), largest_input(t), resize_taps(t));
}

// Maximum, exponential, sum, division: four passes.
std::int64_t softmax_cycles(const Hardware& hardware, const PartTypes& t) {
  return pointwise(hardware, element_of(t), outputs_of(t), vector_cycles(op::Effort::function)) +
         3 * pointwise(hardware, element_of(t), outputs_of(t), 1);
}
// Two sums, and two passes that scale.
std::int64_t normalization_cycles(const Hardware& hardware, const PartTypes& t) {
  return 4 * pointwise(hardware, element_of(t), largest_input(t), 1);
}
// At inference every element is scaled and shifted.
std::int64_t batch_normalization_cycles(const Hardware& hardware, const PartTypes& t) {
  if (t.attributes.integer("training_mode", 0) != 0) return normalization_cycles(hardware, t);
  return pointwise(hardware, element_of(t), outputs_of(t), 2);
}

// A fast transform: 5 log2 n operations on each number of a line.
std::int64_t fourier_cycles(const Hardware& hardware, const PartTypes& t) {
  double operations = 0;
  const Shape& shape = t.inputs[0].shape;
  for (const std::int64_t axis : t.attributes.integers("axes")) {
    const std::int64_t n = shape[normalize_axis(axis, shape.rank())];
    operations += 5 * std::log2(static_cast<double>(std::max<std::int64_t>(2, n)));
  }
  return element_cycles(hardware, t, static_cast<std::int64_t>(std::ceil(operations)));
}

// An element below the diagonal is a sum over those before it: n / 3 multiply-adds an element of the matrix.
std::int64_t cholesky_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape& shape = t.inputs[0].shape;
  return element_cycles(hardware, t, std::max<std::int64_t>(1, shape[shape.rank() - 1] / 3));
}
// n / 2 multiply-adds an element of the right-hand sides.
std::int64_t triangular_solve_cycles(const Hardware& hardware, const PartTypes& t) {
  const Shape& shape = t.inputs[0].shape;
  return pointwise(hardware, element_of(t), outputs_of(t),
                   std::max<std::int64_t>(1, shape[shape.rank() - 1] / 2));
}

std::int64_t recurrent_cycles(const Hardware& hardware, const PartTypes& t) {
  return cells_cycles(hardware, t, false);
}
std::int64_t lstm_gradient_cycles(const Hardware& hardware, const PartTypes& t) {
  return cells_cycles(hardware, t, true);
}

// GU: moments, a root and a division; a sum and a product.
std::int64_t adam_cycles(const Hardware& hardware, const PartTypes& t) {
  return element_cycles(hardware, t, 24);
}
// GU: Adamax has a maximum where Adam has a square and a root, RMSProp one moment and a root.
std::int64_t adaptive_cycles(const Hardware& hardware, const PartTypes& t) {
  return element_cycles(hardware, t, 20);
}
std::int64_t sgd_cycles(const Hardware& hardware, const PartTypes& t) {
  return element_cycles(hardware, t, 6);
}

std::int64_t elementwise_cycles(const Hardware& hardware, op::Effort effort, const PartTypes& t) {
  return element_cycles(hardware, t, vector_cycles(effort));
}

// A vector beyond two that are loaded, and one beyond the first that is stored, take a cycle each.
std::uint64_t fused_cycles(const Hardware& hardware, const Fused& fused, const PartTypes& t) {
  std::int64_t per_vector = 0, loads = 0;
  for (const FusedStep& step : fused.steps) per_vector += vector_cycles(step.definition->traits.effort);
  for (const graph::ValueType& type : t.inputs) loads += count(type) > 1;
  const auto stores = static_cast<std::int64_t>(t.outputs.size());
  per_vector += std::max<std::int64_t>(loads - 2, 0) + stores - 1;
  return static_cast<std::uint64_t>(element_cycles(hardware, t, per_vector));
}

}  // namespace superstep::target::ipu
