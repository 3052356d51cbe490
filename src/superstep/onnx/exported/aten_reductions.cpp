// Sums, means and extremes over axes.
#include <array>

#include "superstep/base/error.h"
#include "superstep/onnx/exported/aten.h"

namespace superstep::onnx {
namespace {

// Without `dim`, or with an empty list of them, all axes.
void reduce(const char* op, Translation& t, const ExportedCall& c) {
  std::string x = t.value(c.tensor("self"));
  const std::int64_t type = t.program().type(c.outputs().at(0)).onnx;
  if (t.program().type(c.tensor("self")).onnx != type) x = t.cast(x, type);
  const std::vector<std::int64_t> axes = c.integers("dim", std::vector<std::int64_t>{});
  t.node(op, {x, axes.empty() ? std::string() : t.integers(axes)}, c.outputs(),
         {{"keepdims", std::int64_t{c.yes("keepdim", false)}}});
}

void sum(Translation& t, const ExportedCall& c) { reduce("ReduceSum", t, c); }
void mean(Translation& t, const ExportedCall& c) { reduce("ReduceMean", t, c); }
void largest(Translation& t, const ExportedCall& c) { reduce("ReduceMax", t, c); }
void smallest(Translation& t, const ExportedCall& c) { reduce("ReduceMin", t, c); }

void place(Translation& t, const ExportedCall& c) {
  if (!c.has("dim")) throw Error(ErrorCode::unsupported, "it is over all axes together");
  t.node(c.base() == "argmax" ? "ArgMax" : "ArgMin", {t.value(c.tensor("self"))}, c.outputs(),
         {{"axis", c.integer("dim")}, {"keepdims", std::int64_t{c.yes("keepdim", false)}}});
}

void cumulative(Translation& t, const ExportedCall& c) {
  const std::int64_t type = t.program().type(c.outputs().at(0)).onnx;
  std::string x = t.value(c.tensor("self"));
  if (t.program().type(c.tensor("self")).onnx != type) x = t.cast(x, type);
  t.node("CumSum", {x, t.integer(c.integer("dim"))}, c.outputs());
}

constexpr auto table = std::to_array<AtenOperator>({
    {"sum", sum},
    {"mean", mean},
    {"amax", largest},
    {"amin", smallest},
    {"argmax", place},
    {"argmin", place},
    {"cumsum", cumulative},
});

}  // namespace

std::span<const AtenOperator> aten_reductions() { return table; }

}  // namespace superstep::onnx
