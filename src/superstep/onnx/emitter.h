// Adding nodes to a graph under import: what can be computed at once becomes a constant, and what a shape
// needs is computed when a shape needs it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/onnx/bounded/bounds.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/core/definition.h"

namespace superstep::onnx {

using graph::Attributes;
using graph::ValueId;
using op::Var;

class Emitter {
 public:
  Emitter(graph::Graph& graph, std::int64_t most_nodes) : builder_(graph), most_nodes_(most_nodes) {}

  op::Builder& builder() { return builder_; }
  graph::Graph& graph() { return builder_.graph(); }

  // The outputs of a node of `op`, up to `outputs`. Small results of constants are constants; inputs that the
  // operator needs to know (shapes, axes) are replaced by their elements where these can be known. Throws
  // Error as the builder does, and (unsupported) when the graph grows beyond its bound.
  std::vector<Var> emit(std::string_view op, std::vector<Var> inputs, Attributes attributes = {},
                        int outputs = 1);
  Var emit1(std::string_view op, std::vector<Var> inputs, Attributes attributes = {}) {
    return emit(op, std::move(inputs), std::move(attributes)).at(0);
  }
  // The same without regard to bounded axes, which what is written with it takes care of itself.
  std::vector<Var> plain(std::string_view op, std::vector<Var> inputs, Attributes attributes = {},
                         int outputs = 1);
  Var plain1(std::string_view op, std::vector<Var> inputs, Attributes attributes = {}) {
    return plain(op, std::move(inputs), std::move(attributes)).at(0);
  }
  Var constant(Tensor data) { return builder_.constant(std::move(data)); }
  Var integers(const std::vector<std::int64_t>& values) { return builder_.integers(values); }
  Var scalar(ElementType type, double value) { return builder_.scalar(type, value); }
  Var reshape(Var x, const Shape& shape);  // x itself when it has that shape

  // The elements of a value that follow from constants and from inputs of known elements; null when there are
  // none, or when computing them would take too long. Valid as long as the emitter.
  const Tensor* known(Var value);

  // Axes whose extent is a bound. What follows how many of their places are taken is not known, but what it
  // is when all of them are, and when none is.
  Bounds& bounds() { return bounds_; }
  const Tensor* when_full(Var value);  // known(), or with all places taken
  const Tensor* when_empty(Var value);
  bool follows_bounds(Var value) { return when_full(value) && empty_.contains(value.id()); }
  void set_bounded(ValueId value, Tensor full, Tensor empty) {
    known_.insert_or_assign(value, std::move(full));
    empty_.insert_or_assign(value, std::move(empty));
  }

  // Elements of an input that may be taken as known where a shape needs them.
  void set_known(ValueId input, Tensor data) { known_.insert_or_assign(input, std::move(data)); }
  // A value whose elements are loaded when they are needed.
  void set_loader(ValueId value, std::function<Tensor()> load) { loaders_[value] = std::move(load); }
  // A sequence of tensors has no place in a graph, but its members have: a handle stands for them among the
  // values, until something takes them out. Null for an ordinary value.
  Var add_sequence(std::vector<Var> members);
  const std::vector<Var>* sequence(Var handle) const;

  // 1, 2, 3, ...: a seed for a node that has none.
  double next_seed() { return ++seeds_; }

  // A constant that may be trained: nothing is computed from it at import.
  void mark_parameter(ValueId value) { parameters_.insert(value); }

 private:
  bool foldable(const op::Definition& definition, std::span<const Var> inputs) const;
  std::optional<std::vector<Var>> fold(const op::Definition& definition, std::span<const Var> inputs,
                                       const Attributes& attributes, int outputs, bool needed);
  std::vector<Var> add(const op::Definition& definition, std::vector<Var> inputs,
                       const Attributes& attributes, int outputs);
  std::vector<Var> shape_constant(std::string_view op, Var x, const Attributes& attributes);
  void substitute(const op::Definition& definition, std::vector<Var>& inputs);
  bool make_all_known(std::vector<Var>& inputs);
  Var as_constant(Var value);
  void count_node();

  Var runtime_shape(Var x);
  const Tensor* leaf(ValueId id);
  bool evaluate(graph::NodeId node);
  bool evaluate_empty(const graph::Node& node, std::vector<const Tensor*> inputs);
  void collect(ValueId id, std::set<graph::NodeId>& nodes) const;

  op::Builder builder_;
  std::int64_t most_nodes_;
  double seeds_ = 0;
  Bounds bounds_;
  std::map<ValueId, Tensor> known_;
  std::map<ValueId, Tensor> empty_;  // of what follows how many places of bounded axes are taken
  std::map<ValueId, std::function<Tensor()>> loaders_;
  std::map<ValueId, Var> constants_;  // that stand for known values
  std::map<ValueId, std::vector<Var>> sequences_;
  std::set<ValueId> parameters_, unknown_;
};

}  // namespace superstep::onnx
