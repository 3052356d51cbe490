// What moves elements: views, joins, cuts, padding; and the sizes that such calls follow.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/onnx/exported/aten.h"

namespace superstep::onnx {
namespace {

using Names = Translation::Names;
using Integers = std::vector<std::int64_t>;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::unsupported, why); }

std::int64_t rank_of(const Translation& t, const std::string& exported) {
  return static_cast<std::int64_t>(t.program().extents(exported).size());
}

std::int64_t axis_of(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= std::max<std::int64_t>(rank, 1))
    refuse(fmt::format("there is no axis {}", axis));
  return axis < 0 ? axis + rank : axis;
}

std::string self(const Translation& t, const ExportedCall& c) { return t.value(c.tensor("self")); }

void reshape(Translation& t, const ExportedCall& c) {
  std::vector<ExportedCall::Size> wanted = c.sizes(c.has("size") ? "size" : "shape");
  for (const ExportedCall::Size& each : wanted)
    if (each.symbol.empty() && each.value == 0) refuse("its result is empty");
  t.node("Reshape", {self(t, c), t.sizes(wanted)}, c.outputs());
}

// To extents of which one may follow the batch: it is what is left.
void to_extents_of_result(Translation& t, const ExportedCall& c) {
  Integers extents;
  for (const ExportedExtent& each : t.program().extents(c.outputs().at(0))) extents.push_back(each.value);
  if (std::ranges::count(extents, -1) > 1 || std::ranges::count(extents, 0) > 0)
    refuse("several of its extents are not known before the model runs");
  t.node("Reshape", {self(t, c), t.integers(extents)}, c.outputs());
}

void flatten(Translation& t, const ExportedCall& c) {
  const std::int64_t rank = rank_of(t, c.tensor("self"));
  const std::int64_t first = axis_of(c.integer("start_dim", 0), rank),
                     last = axis_of(c.integer("end_dim", -1), rank);
  if (first == 1 && last == rank - 1)
    return t.node("Flatten", {self(t, c)}, c.outputs(), {{"axis", std::int64_t{1}}});
  to_extents_of_result(t, c);
}

void expand(Translation& t, const ExportedCall& c) {
  std::vector<ExportedCall::Size> wanted = c.sizes("size");
  for (ExportedCall::Size& each : wanted)
    if (each.symbol.empty() && each.value == -1) each.value = 1;  // as it is
  t.node("Expand", {self(t, c), t.sizes(wanted)}, c.outputs());
}

void permute(Translation& t, const ExportedCall& c) {
  const std::int64_t rank = rank_of(t, c.tensor("self"));
  Integers order = c.integers("dims");
  for (std::int64_t& axis : order) axis = axis_of(axis, rank);
  t.node("Transpose", {self(t, c)}, c.outputs(), {{"perm", order}});
}

void transpose(Translation& t, const ExportedCall& c) {
  const std::int64_t rank = rank_of(t, c.tensor("self"));
  Integers order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  if (c.base() == "t")
    std::ranges::reverse(order);
  else
    std::swap(order.at(static_cast<std::size_t>(axis_of(c.integer("dim0"), rank))),
              order.at(static_cast<std::size_t>(axis_of(c.integer("dim1"), rank))));
  t.node("Transpose", {self(t, c)}, c.outputs(), {{"perm", order}});
}

void unsqueeze(Translation& t, const ExportedCall& c) {
  t.node("Unsqueeze", {self(t, c), t.integers({axis_of(c.integer("dim"), rank_of(t, c.tensor("self")) + 1)})},
         c.outputs());
}

// Axes of other extents than one stay.
void squeeze(Translation& t, const ExportedCall& c) {
  const std::vector<ExportedExtent> extents = t.program().extents(c.tensor("self"));
  const auto rank = static_cast<std::int64_t>(extents.size());
  Integers all(extents.size()), axes;
  std::iota(all.begin(), all.end(), 0);
  for (const std::int64_t axis : c.has("dim") ? c.integers("dim") : all)
    if (extents.at(static_cast<std::size_t>(axis_of(axis, rank))).value == 1)
      axes.push_back(axis_of(axis, rank));
  if (axes.empty()) return t.node("Identity", {self(t, c)}, c.outputs());
  t.node("Squeeze", {self(t, c), t.integers(axes)}, c.outputs());
}

void concat(Translation& t, const ExportedCall& c) {
  Names inputs;
  for (const std::string& each : c.tensors("tensors")) inputs.push_back(t.value(each));
  t.node("Concat", inputs, c.outputs(), {{"axis", c.integer("dim", 0)}});
}

void stack(Translation& t, const ExportedCall& c) {
  const std::int64_t axis = axis_of(c.integer("dim", 0), rank_of(t, c.outputs().at(0)));
  Names inputs;
  for (const std::string& each : c.tensors("tensors"))
    inputs.push_back(t.node1("Unsqueeze", {t.value(each), t.integers({axis})}));
  t.node("Concat", inputs, c.outputs(), {{"axis", axis}});
}

void slice(Translation& t, const ExportedCall& c) {
  const auto position = [&](const char* argument, std::int64_t otherwise) {
    return t.sizes({c.has(argument) ? c.size(argument) : ExportedCall::Size{otherwise, {}}});
  };
  t.node("Slice",
         {self(t, c), position("start", 0), position("end", std::numeric_limits<std::int64_t>::max()),
          t.integers({c.integer("dim", 0)}), t.integers({c.integer("step", 1)})},
         c.outputs());
}

void select(Translation& t, const ExportedCall& c) {
  t.node("Gather", {self(t, c), t.size(c.size("index"))}, c.outputs(), {{"axis", c.integer("dim")}});
}

// Parts that the file says the extents of.
void split(Translation& t, const ExportedCall& c) {
  const auto axis = static_cast<std::size_t>(axis_of(c.integer("dim", 0), rank_of(t, c.tensor("self"))));
  const bool one_each = c.base() == "unbind";
  Integers lengths;
  Names parts;
  for (const std::string& output : c.outputs()) {
    lengths.push_back(one_each ? 1 : t.program().extents(output).at(axis).value);
    parts.push_back(one_each ? output + ".kept" : output);
    if (lengths.back() < 0) refuse("its parts follow the batch");
  }
  t.node("Split", {self(t, c), t.integers(lengths)}, parts, {{"axis", static_cast<std::int64_t>(axis)}});
  for (std::size_t i = 0; one_each && i < parts.size(); ++i)
    t.node("Squeeze", {parts[i], t.integers({static_cast<std::int64_t>(axis)})}, {c.outputs()[i]});
}

// Pads come in pairs, the last axis first.
void pad(Translation& t, const ExportedCall& c) {
  const std::string mode = c.text("mode", "constant");
  const char* name = mode == "constant"    ? "constant"
                     : mode == "reflect"   ? "reflect"
                     : mode == "replicate" ? "edge"
                     : mode == "circular"  ? "wrap"
                                           : nullptr;
  if (!name) refuse(fmt::format("it pads in mode '{}'", mode));
  const Integers pairs = c.integers("pad");
  const auto rank = static_cast<std::size_t>(rank_of(t, c.tensor("self")));
  if (pairs.size() % 2 != 0 || pairs.size() > 2 * rank) refuse("its pads are no pairs");
  Integers pads(2 * rank, 0);
  for (std::size_t i = 0; i < pairs.size() / 2; ++i)
    pads[rank - 1 - i] = pairs[2 * i], pads[2 * rank - 1 - i] = pairs[2 * i + 1];
  const std::int64_t type = t.program().type(c.tensor("self")).onnx;
  Names inputs = {self(t, c), t.integers(pads)};
  if (mode == "constant") inputs.push_back(t.number(type, c.real("value", 0)));
  t.node("Pad", inputs, c.outputs(), {{"mode", std::string(name)}});
}

void pixel_shuffle(Translation& t, const ExportedCall& c) {
  t.node("DepthToSpace", {self(t, c)}, c.outputs(),
         {{"blocksize", c.integer("upscale_factor")}, {"mode", std::string("CRD")}});
}

// Filled with one number.
void filled(Translation& t, const ExportedCall& c) {
  const std::int64_t type = t.program().type(c.outputs().at(0)).onnx;
  const double value = c.base().starts_with("ones")   ? 1
                       : c.base().starts_with("full") ? c.real("fill_value")
                                                      : 0;
  const std::string shape = c.has("size") ? t.sizes(c.sizes("size")) : t.node1("Shape", {self(t, c)});
  t.node("Expand", {t.number(type, value), shape}, c.outputs());
}

void range(Translation& t, const ExportedCall& c) {
  const std::int64_t type = t.program().type(c.outputs().at(0)).onnx;
  const auto of = [&](const char* argument, double otherwise) {
    if (!c.has(argument)) return t.number(type, otherwise);
    return c.is_number(argument) ? t.number(type, c.real(argument)) : t.cast(t.size(c.size(argument)), type);
  };
  t.node("Range", {of("start", 0), of("end", 0), of("step", 1)}, c.outputs());
}

void triangle(Translation& t, const ExportedCall& c) {
  t.node("Trilu", {self(t, c), t.integer(c.integer("diagonal", 0))}, c.outputs(),
         {{"upper", std::int64_t{c.base() == "triu"}}});
}

// --- sizes

void size_of_axis(Translation& t, const ExportedCall& c) {
  const std::string shape = t.node1("Shape", {self(t, c)});
  t.node("Gather", {shape, t.integer(axis_of(c.integer("dim"), rank_of(t, c.tensor("self"))))}, c.outputs(),
         {{"axis", std::int64_t{0}}});
}

void of_sizes(Translation& t, const ExportedCall& c) {
  const std::string_view name = c.op();
  const char* op = name == "_operator.add"   ? "Add"
                   : name == "_operator.sub" ? "Sub"
                   : name == "_operator.mul" ? "Mul"
                                             : "Div";
  t.node(op, {t.size(c.size("a")), t.size(c.size("b"))}, c.outputs());
}

constexpr auto table = std::to_array<AtenOperator>({
    {"view", reshape, true},
    {"_unsafe_view", reshape, true},
    {"reshape", reshape, true},
    {"unflatten", to_extents_of_result, true},
    {"flatten", flatten, true},
    {"expand", expand, true},
    {"permute", permute, true},
    {"transpose", transpose, true},
    {"t", transpose, true},
    {"unsqueeze", unsqueeze, true},
    {"squeeze", squeeze, true},
    {"cat", concat},
    {"stack", stack},
    {"slice", slice, true},
    {"select", select, true},
    {"split", split, true},
    {"split_with_sizes", split, true},
    {"chunk", split, true},
    {"unbind", split, true},
    {"pad", pad},
    {"constant_pad_nd", pad},
    {"pixel_shuffle", pixel_shuffle},
    {"zeros", filled},
    {"ones", filled},
    {"full", filled},
    {"zeros_like", filled},
    {"ones_like", filled},
    {"full_like", filled},
    {"arange", range},
    {"tril", triangle},
    {"triu", triangle},
    {"sym_size", size_of_axis},
    {"_operator.add", of_sizes},
    {"_operator.sub", of_sizes},
    {"_operator.mul", of_sizes},
    {"_operator.floordiv", of_sizes},
});

}  // namespace

std::span<const AtenOperator> aten_movement() { return table; }

}  // namespace superstep::onnx
