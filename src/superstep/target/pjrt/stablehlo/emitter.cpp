#include "superstep/target/pjrt/stablehlo/emitter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <numeric>

namespace superstep::target::stablehlo {
namespace {

std::string names_of(std::span<const Value> values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + value.name;
  return text;
}

std::string types_of(std::span<const Value> values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + to_text(value.type);
  return text;
}

std::string types_of(std::span<const Type> types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + to_text(type);
  return text;
}

std::string braces(std::string_view attributes) {
  return attributes.empty() ? "" : fmt::format(" {{{}}}", attributes);
}

Extents ones(std::size_t count) { return Extents(count, 1); }

const char* operation_of(Fold fold) {
  switch (fold) {
    case Fold::sum: return "add";
    case Fold::product: return "multiply";
    case Fold::largest: return "maximum";
    case Fold::smallest: return "minimum";
    case Fold::all: return "and";
    case Fold::any: return "or";
  }
  return "";
}

// The least or the largest value of a type, infinite where there is one.
Tensor extreme(ElementType element, bool largest) {
  Tensor result(element, Shape{});
  if (is_floating(element)) {
    const double infinity = std::numeric_limits<double>::infinity();
    result.set(0, largest ? infinity : -infinity);
    return result;
  }
  dispatch(element, [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      result.as<T>()[0] = largest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
  });
  return result;
}

std::string window_text(const Emitter::Windows& w) {
  std::string text = "window_dimensions = " + array_text(w.sizes);
  text += ", window_strides = " + array_text(w.strides);
  if (!w.base_dilations.empty()) text += ", base_dilations = " + array_text(w.base_dilations);
  if (!w.dilations.empty()) text += ", window_dilations = " + array_text(w.dilations);
  return text + ", padding = " + pairs_text(w.pad_begin, w.pad_end);
}

// f32 means f32: without this, accelerators multiply numbers of fewer bits.
constexpr std::string_view exact =
    "precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]";

}  // namespace

Tensor neutral(Fold fold, ElementType element) {
  switch (fold) {
    case Fold::product:
    case Fold::all: return Tensor::full(element, Shape{}, 1);
    case Fold::largest: return extreme(element, false);
    case Fold::smallest: return extreme(element, true);
    default: return Tensor::full(element, Shape{}, 0);
  }
}

std::string Emitter::next_name() { return fmt::format("%{}", next_++); }

void Emitter::line(const std::string& text) {
  text_.append(static_cast<std::size_t>(2 * depth_), ' ');
  text_ += text;
  text_ += '\n';
}

Value Emitter::one(std::string_view op, std::span<const Value> operands, const Type& result,
                   std::string_view attributes) {
  Value value{next_name(), result};
  line(fmt::format("{} = \"stablehlo.{}\"({}){} : ({}) -> {}", value.name, op, names_of(operands),
                   braces(attributes), types_of(operands), to_text(result)));
  return value;
}

Value Emitter::constant(const Tensor& tensor) {
  return one("constant", {}, {tensor.type(), tensor.shape()}, "value = " + dense_text(tensor));
}

Value Emitter::splat(ElementType element, const Shape& shape, double value) {
  const Type type{element, shape};
  const std::string elements = shape.element_count() == 0 ? "" : element_text(element, value);
  return one("constant", {}, type, fmt::format("value = dense<{}> : {}", elements, to_text(type)));
}

Value Emitter::iota(ElementType element, const Shape& shape, int axis) {
  return one("iota", {}, {element, shape}, fmt::format("iota_dimension = {} : i64", axis));
}

Value Emitter::compare(std::string_view direction, const Value& a, const Value& b) {
  return one("compare", {a, b}, {ElementType::boolean, a.shape()},
             fmt::format("comparison_direction = #stablehlo<comparison_direction {}>", direction));
}

Value Emitter::convert(const Value& x, ElementType element) {
  if (x.element() == element) return x;
  return one("convert", {x}, {element, x.shape(), x.type.complex});
}

Value Emitter::bitcast(const Value& x, ElementType element) {
  if (x.element() == element) return x;
  return one("bitcast_convert", {x}, {element, x.shape()});
}

Value Emitter::reshape(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return one("reshape", {x}, {x.element(), shape, x.type.complex});
}

Value Emitter::broadcast(const Value& x, const Shape& shape, const Extents& axes) {
  return one("broadcast_in_dim", {x}, {x.element(), shape, x.type.complex},
             "broadcast_dimensions = " + array_text(axes));
}

Value Emitter::expand(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Extents axes;
  for (int axis = shape.rank() - x.rank(); axis < shape.rank(); ++axis) axes.push_back(axis);
  return broadcast(x, shape, axes);
}

Value Emitter::transpose(const Value& x, const Extents& permutation) {
  Extents extents;
  bool same = true;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    extents.push_back(x.shape()[static_cast<int>(permutation[i])]);
    same = same && permutation[i] == static_cast<std::int64_t>(i);
  }
  if (same) return x;
  return one("transpose", {x}, {x.element(), Shape(extents), x.type.complex},
             "permutation = " + array_text(permutation));
}

Value Emitter::slice(const Value& x, const Extents& begin, const Extents& end, const Extents& steps) {
  const Extents step = steps.empty() ? ones(begin.size()) : steps;
  Extents extents;
  for (std::size_t i = 0; i < begin.size(); ++i)
    extents.push_back(end[i] > begin[i] ? (end[i] - begin[i] + step[i] - 1) / step[i] : 0);
  if (Shape(extents) == x.shape()) return x;
  return one("slice", {x}, {x.element(), Shape(extents), x.type.complex},
             fmt::format("start_indices = {}, limit_indices = {}, strides = {}", array_text(begin),
                         array_text(end), array_text(step)));
}

Value Emitter::cut(const Value& x, int axis, std::int64_t begin, std::int64_t end) {
  Extents from(static_cast<std::size_t>(x.rank()), 0), to = x.shape().extents();
  from[static_cast<std::size_t>(axis)] = begin;
  to[static_cast<std::size_t>(axis)] = end;
  return slice(x, from, to);
}

Value Emitter::pad(const Value& x, const Value& value, const Extents& low, const Extents& high,
                   const Extents& interior) {
  const Extents between = interior.empty() ? Extents(low.size(), 0) : interior;
  Extents extents;
  for (std::size_t i = 0; i < low.size(); ++i) {
    const std::int64_t extent = x.shape()[static_cast<int>(i)];
    extents.push_back(low[i] + high[i] + extent + (extent > 0 ? (extent - 1) * between[i] : 0));
  }
  return one("pad", {x, value}, {x.element(), Shape(extents), x.type.complex},
             fmt::format("edge_padding_low = {}, edge_padding_high = {}, interior_padding = {}",
                         array_text(low), array_text(high), array_text(between)));
}

Value Emitter::concatenate(std::span<const Value> parts, int axis) {
  if (parts.size() == 1) return parts[0];
  Extents extents = parts[0].shape().extents();
  auto& along = extents[static_cast<std::size_t>(axis)];
  along = 0;
  for (const Value& part : parts) along += part.shape()[axis];
  return one("concatenate", parts, {parts[0].element(), Shape(extents), parts[0].type.complex},
             fmt::format("dimension = {} : i64", axis));
}

Value Emitter::reverse(const Value& x, const Extents& axes) {
  return axes.empty() ? x : one("reverse", {x}, x.type, "dimensions = " + array_text(axes));
}

Value Emitter::gather(const Value& operand, const Value& indices, const GatherShape& shape,
                      const Shape& result) {
  std::string numbers = "offset_dims = " + numbers_text(shape.offset_dims);
  numbers += ", collapsed_slice_dims = " + numbers_text(shape.collapsed_dims);
  numbers += ", start_index_map = " + numbers_text(shape.start_index_map);
  numbers += fmt::format(", index_vector_dim = {}", shape.index_vector_dim);
  return one(
      "gather", {operand, indices}, {operand.element(), result},
      fmt::format("dimension_numbers = #stablehlo.gather<{}>, slice_sizes = {}, indices_are_sorted = false",
                  numbers, array_text(shape.slice_sizes)));
}

Value Emitter::take(const Value& x, const Extents& places, int axis) {
  const auto count = static_cast<std::int64_t>(places.size());
  Extents offsets, sizes = x.shape().extents(), extents = sizes;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) offsets.push_back(i);
  sizes[static_cast<std::size_t>(axis)] = 1;
  extents[static_cast<std::size_t>(axis)] = count;
  const Value indices = constant(Tensor::from(Shape{count}, places));
  return gather(x, indices, {offsets, {axis}, {axis}, 1, sizes}, Shape(extents));
}

Value Emitter::scatter(const Value& operand, const Value& indices, const Value& updates,
                       const ScatterShape& shape, const Body& combine) {
  std::string numbers = "update_window_dims = " + numbers_text(shape.update_window_dims);
  numbers += ", inserted_window_dims = " + numbers_text(shape.inserted_dims);
  numbers += ", scatter_dims_to_operand_dims = " + numbers_text(shape.scatter_dims_to_operand);
  numbers += fmt::format(", index_vector_dim = {}", shape.index_vector_dim);
  const Type one_element{operand.element(), Shape{}};
  const Value operands[] = {operand, indices, updates};
  const std::vector<Type> arguments[] = {{one_element, one_element}};
  const std::string attributes = fmt::format(
      "scatter_dimension_numbers = #stablehlo.scatter<{}>, indices_are_sorted = false, "
      "unique_indices = false",
      numbers);
  return region_op("scatter", operands, std::span(&operand.type, 1), std::span(&combine, 1), arguments,
                   attributes)[0];
}

Value Emitter::dynamic_slice(const Value& x, std::span<const Value> starts, const Extents& sizes) {
  std::vector<Value> operands = {x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return one("dynamic_slice", operands, {x.element(), Shape(sizes)}, "slice_sizes = " + array_text(sizes));
}

Value Emitter::dynamic_update(const Value& x, const Value& update, std::span<const Value> starts) {
  std::vector<Value> operands = {x, update};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return one("dynamic_update_slice", operands, x.type);
}

Value Emitter::fold(Fold how, const Value& a, const Value& b) { return binary(operation_of(how), a, b); }

Value Emitter::reduce(const Value& x, const Extents& axes, Fold how) {
  const Value start = constant(neutral(how, x.element()));
  return reduce(std::span(&x, 1), std::span(&start, 1), axes,
                [&](const std::vector<Value>& pair) { return std::vector{fold(how, pair[0], pair[1])}; })[0];
}

std::vector<Value> Emitter::reduce(std::span<const Value> xs, std::span<const Value> starts,
                                   const Extents& axes, const Body& body) {
  std::vector<bool> folded(static_cast<std::size_t>(xs[0].rank()), false);
  for (std::int64_t axis : axes) folded[static_cast<std::size_t>(axis)] = true;
  Extents kept;
  for (int axis = 0; axis < xs[0].rank(); ++axis)
    if (!folded[static_cast<std::size_t>(axis)]) kept.push_back(xs[0].shape()[axis]);
  std::vector<Value> operands(xs.begin(), xs.end());
  operands.insert(operands.end(), starts.begin(), starts.end());
  std::vector<Type> results, arguments;
  for (const Value& x : xs) results.push_back({x.element(), Shape(kept)});
  for (int twice = 0; twice < 2; ++twice)
    for (const Value& x : xs) arguments.push_back({x.element(), Shape{}});
  return region_op("reduce", operands, results, std::span(&body, 1), std::span(&arguments, 1),
                   "dimensions = " + array_text(axes));
}

Value Emitter::reduce_window(const Value& x, const Windows& windows, const Shape& result, Fold how) {
  const Value start = constant(neutral(how, x.element()));
  return reduce_window(
      std::span(&x, 1), std::span(&start, 1), windows, result,
      [&](const std::vector<Value>& pair) { return std::vector{fold(how, pair[0], pair[1])}; })[0];
}

std::vector<Value> Emitter::reduce_window(std::span<const Value> xs, std::span<const Value> starts,
                                          const Windows& windows, const Shape& result, const Body& body) {
  std::vector<Value> operands(xs.begin(), xs.end());
  operands.insert(operands.end(), starts.begin(), starts.end());
  std::vector<Type> results, arguments;
  for (const Value& x : xs) results.push_back({x.element(), result});
  for (int twice = 0; twice < 2; ++twice)
    for (const Value& x : xs) arguments.push_back({x.element(), Shape{}});
  return region_op("reduce_window", operands, results, std::span(&body, 1), std::span(&arguments, 1),
                   window_text(windows));
}

Value Emitter::dot(const Value& a, const Value& b, const Contraction& axes, const Shape& result,
                   ElementType element) {
  const std::string numbers = fmt::format(
      "lhs_batching_dimensions = {}, rhs_batching_dimensions = {}, lhs_contracting_dimensions = {}, "
      "rhs_contracting_dimensions = {}",
      numbers_text(axes.batch_a), numbers_text(axes.batch_b), numbers_text(axes.sum_a),
      numbers_text(axes.sum_b));
  return one("dot_general", {a, b}, {element, result},
             fmt::format("dot_dimension_numbers = #stablehlo.dot<{}>, {}", numbers, exact));
}

Value Emitter::convolve(const Value& x, const Value& w, const ConvolutionShape& shape, const Shape& result,
                        ElementType element) {
  std::string text = "window_strides = " + array_text(shape.strides);
  text += ", padding = " + pairs_text(shape.pad_begin, shape.pad_end);
  text += ", lhs_dilation = " + array_text(shape.lhs_dilation);
  text += ", rhs_dilation = " + array_text(shape.rhs_dilation);
  text += fmt::format(", dimension_numbers = #stablehlo.conv<{}>", shape.layout);
  text += fmt::format(", feature_group_count = {} : i64, batch_group_count = {} : i64, {}",
                      shape.feature_groups, shape.batch_groups, exact);
  return one("convolution", {x, w}, {element, result}, text);
}

void Emitter::refuse_where(const Value& wrong, std::string words) {
  Extents axes(static_cast<std::size_t>(wrong.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  refusals_.push_back({axes.empty() ? wrong : reduce(wrong, axes, Fold::any), std::move(words)});
}

std::vector<Value> Emitter::sort(std::span<const Value> xs, int axis, const Body& before) {
  std::vector<Type> results, arguments;
  for (const Value& x : xs) {
    results.push_back(x.type);
    arguments.insert(arguments.end(), 2, {x.element(), Shape{}});
  }
  return region_op("sort", xs, results, std::span(&before, 1), std::span(&arguments, 1),
                   fmt::format("dimension = {} : i64, is_stable = true", axis));
}

std::vector<Value> Emitter::loop(std::span<const Value> starts, const Body& goes_on, const Body& body) {
  std::vector<Type> types;
  for (const Value& start : starts) types.push_back(start.type);
  const Body bodies[] = {goes_on, body};
  const std::vector<Type> arguments[] = {types, types};
  return region_op("while", starts, types, bodies, arguments, {});
}

// Written apart, for the operation stands before its bodies and names come in the order of the text.
std::string Emitter::region(const Body& body, std::span<const Type> arguments) {
  std::string outer = std::move(text_);
  text_.clear();
  ++depth_;
  std::vector<Value> values;
  std::string header;
  for (const Type& type : arguments) {
    values.push_back({fmt::format("%a{}", next_++), type});
    header += fmt::format("{}{}: {}", header.empty() ? "" : ", ", values.back().name, to_text(type));
  }
  const std::vector<Value> results = body(std::move(values));
  line(fmt::format("\"stablehlo.return\"({}) : ({}) -> ()", names_of(results), types_of(results)));
  --depth_;
  const std::string inner = std::move(text_);
  text_ = std::move(outer);
  const std::string indent(static_cast<std::size_t>(2 * depth_), ' ');
  return fmt::format("{{\n{}^bb0({}):\n{}{}}}", indent, header, inner, indent);
}

std::vector<Value> Emitter::region_op(std::string_view op, std::span<const Value> operands,
                                      std::span<const Type> results, std::span<const Body> bodies,
                                      std::span<const std::vector<Type>> arguments,
                                      std::string_view attributes) {
  std::string regions;
  for (std::size_t i = 0; i < bodies.size(); ++i)
    regions += (i ? ", " : "") + region(bodies[i], arguments[i]);
  const std::string name = next_name();
  std::vector<Value> values;
  for (std::size_t i = 0; i < results.size(); ++i)
    values.push_back({results.size() == 1 ? name : fmt::format("{}#{}", name, i), results[i]});
  const std::string made = results.size() == 1 ? name : fmt::format("{}:{}", name, results.size());
  const std::string types =
      results.size() == 1 ? to_text(results[0]) : fmt::format("({})", types_of(results));
  line(fmt::format("{} = \"stablehlo.{}\"({}) ({}){} : ({}) -> {}", made, op, names_of(operands), regions,
                   braces(attributes), types_of(operands), types));
  return values;
}

}  // namespace superstep::target::stablehlo
