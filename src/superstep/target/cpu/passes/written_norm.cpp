#include "superstep/target/cpu/passes/written_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "superstep/target/cpu/plan/patterns.h"

namespace superstep::target::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;
using graph::ValueKind;

class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph) {}

  std::optional<WrittenNorm> run(const Node& node) const {
    if (node.op == "Add") return shifted(node);
    if (node.op == "Mul")
      if (auto norm = scaled(node)) return norm;
    return normalised(node.outputs[0]);
  }

 private:
  const Node* producer(ValueId id, std::string_view op) const {
    if (!id.valid() || graph_.value(id).kind != ValueKind::computed) return nullptr;
    const Node& node = graph_.node(graph_.value(id).producer);
    return node.op == op ? &node : nullptr;
  }
  const Shape& shape(ValueId id) const { return graph_.type(id).shape; }

  // A parameter of the normalised axes.
  bool fits(ValueId id, const WrittenNorm& norm) const {
    const graph::Value& value = graph_.value(id);
    if (value.kind != ValueKind::constant && value.kind != ValueKind::state) return false;
    const auto& whole = shape(norm.x).extents();
    return value.type.shape.extents() == std::vector<std::int64_t>(whole.begin() + norm.axis, whole.end());
  }

  std::optional<WrittenNorm> shifted(const Node& node) const {
    for (std::size_t side : {0u, 1u}) {
      const Node* product = producer(node.inputs[side], "Mul");
      auto norm = product ? scaled(*product) : std::nullopt;
      if (!norm || !fits(node.inputs[1 - side], *norm)) continue;
      norm->shift = node.inputs[1 - side];
      return norm;
    }
    return std::nullopt;
  }

  std::optional<WrittenNorm> scaled(const Node& node) const {
    for (std::size_t side : {0u, 1u}) {
      auto norm = normalised(node.inputs[side]);
      if (!norm || !fits(node.inputs[1 - side], *norm)) continue;
      norm->scale = node.inputs[1 - side];
      return norm;
    }
    return std::nullopt;
  }

  std::optional<WrittenNorm> normalised(ValueId id) const {
    if (const Node* quotient = producer(id, "Div"))
      return over_root(quotient->inputs[0], root(quotient->inputs[1]));
    const Node* product = producer(id, "Mul");
    if (!product) return std::nullopt;
    for (std::size_t side : {0u, 1u})
      if (auto norm = over_root(product->inputs[side], reciprocal_root(product->inputs[1 - side])))
        return norm;
    return std::nullopt;
  }

  // What is under the root of a value; invalid where it is none.
  ValueId root(ValueId id) const {
    if (const Node* node = producer(id, "Sqrt")) return node->inputs[0];
    return power(id, 0.5);
  }
  ValueId reciprocal_root(ValueId id) const {
    if (const Node* node = producer(id, "Reciprocal")) return root(node->inputs[0]);
    if (const Node* node = producer(id, "Div"))
      if (uniform_constant(graph_, node->inputs[0]) == 1.0) return root(node->inputs[1]);
    return power(id, -0.5);
  }
  ValueId power(ValueId id, double exponent) const {
    const Node* node = producer(id, "Pow");
    return node && uniform_constant(graph_, node->inputs[1]) == exponent ? node->inputs[0] : ValueId();
  }

  std::optional<WrittenNorm> over_root(ValueId centred, ValueId under_root) const {
    const Node* sum = producer(under_root, "Add");
    if (!sum || graph_.type(centred).element != ElementType::f32) return std::nullopt;
    for (std::size_t side : {0u, 1u}) {
      const auto epsilon = uniform_constant(graph_, sum->inputs[1 - side]);
      const Node* variance = producer(sum->inputs[side], "ReduceMean");
      if (!epsilon || *epsilon < 0 || !variance) continue;
      const int axis = last_axes(*variance);
      const ValueId x = deviation_of(centred, axis);
      if (axis < 0 || !x.valid() || !is_square_of(variance->inputs[0], x, axis)) continue;
      return WrittenNorm{.x = x, .scale = {}, .shift = {}, .axis = axis, .epsilon = *epsilon};
    }
    return std::nullopt;
  }

  // The first of the axes that are reduced, where these are the last ones and stay; else -1.
  int last_axes(const Node& reduction) const {
    const int rank = shape(reduction.inputs[0]).rank();
    if (reduction.attributes.integer("keepdims", 1) == 0 || reduction.inputs.size() < 2 ||
        !reduction.inputs[1].valid() || graph_.value(reduction.inputs[1]).kind != ValueKind::constant)
      return -1;
    const Tensor& given = graph_.value(reduction.inputs[1]).data;
    std::vector<int> axes;
    for (std::int64_t i = 0; i < given.element_count(); ++i)
      axes.push_back(normalize_axis(static_cast<std::int64_t>(given.at(i)), rank));
    std::ranges::sort(axes);
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i] != rank - static_cast<int>(axes.size() - i)) return -1;
    return axes.empty() ? -1 : axes[0];
  }

  // x of x minus its mean over the axes from `axis` on.
  ValueId deviation_of(ValueId id, int axis) const {
    const Node* difference = producer(id, "Sub");
    const Node* mean = difference ? producer(difference->inputs[1], "ReduceMean") : nullptr;
    const bool own = mean && mean->inputs[0] == difference->inputs[0] && last_axes(*mean) == axis;
    return own ? difference->inputs[0] : ValueId();
  }

  bool is_square_of(ValueId id, ValueId x, int axis) const {
    const auto is_deviation = [&](ValueId value) { return deviation_of(value, axis) == x; };
    if (const Node* product = producer(id, "Mul"))
      return is_deviation(product->inputs[0]) && is_deviation(product->inputs[1]);
    const Node* power = producer(id, "Pow");
    return power && uniform_constant(graph_, power->inputs[1]) == 2.0 && is_deviation(power->inputs[0]);
  }

  const Graph& graph_;
};

}  // namespace

std::optional<WrittenNorm> written_norm(const Graph& graph, const Node& node) {
  return Reader(graph).run(node);
}

}  // namespace superstep::target::cpu
