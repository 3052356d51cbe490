// Building graphs: handles to values with arithmetic, and a builder that checks every node as it is added.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"

namespace superstep::op {

class Builder;

// A value of the graph under construction. A default-constructed Var is no value ("left out", "zero").
class Var {
 public:
  Var() = default;
  Var(Builder* builder, graph::ValueId id) : builder_(builder), id_(id) {}
  bool valid() const { return id_.valid(); }
  graph::ValueId id() const { return id_; }
  Builder& builder() const { return *builder_; }
  const graph::ValueType& type() const;
  const Shape& shape() const { return type().shape; }
  ElementType element() const { return type().element; }

 private:
  Builder* builder_ = nullptr;
  graph::ValueId id_;
};

class Builder {
 public:
  explicit Builder(graph::Graph& graph) : graph_(graph) {}

  graph::Graph& graph() { return graph_; }
  const graph::Graph& graph() const { return graph_; }

  Var input(std::string name, ElementType element, Shape shape);
  Var state(std::string name, Tensor initial);
  Var constant(Tensor data, std::string name = {});
  Var scalar(ElementType element, double value);          // a constant of rank 0
  Var integers(const std::vector<std::int64_t>& values);  // a constant i64 list (shapes, axes)
  Var zeros_like(Var value);
  void output(std::string name, Var value);
  void update(Var state, Var next);
  Var var(graph::ValueId id) { return {this, id}; }

  // Adds a node after checking it with its operator's shape rule; throws Error (bad_graph) naming operator,
  // node, input and what was expected. Invalid Vars at the end of `inputs` are trimmed. All outputs the
  // rule gives are made, up to `outputs`.
  std::vector<Var> node(std::string_view op, std::span<const Var> inputs, graph::Attributes attributes = {},
                        int outputs = 1, std::span<const std::string> output_names = {});
  Var node1(std::string_view op, std::initializer_list<Var> inputs, graph::Attributes attributes = {});

  // The name and phase that nodes get from here on. A name scope is a path: "conv1", "attention/theta".
  void set_name(std::string name) { name_ = std::move(name); }
  const std::string& name() const { return name_; }
  void set_phase(graph::Phase phase) { phase_ = phase; }
  graph::Phase phase() const { return phase_; }

 private:
  graph::Graph& graph_;
  std::string name_;
  graph::Phase phase_ = graph::Phase::forward;
};

// Sets the node name for a block of building, and puts the old one back.
class NameScope {
 public:
  NameScope(Builder& builder, std::string name) : builder_(builder), old_(builder.name()) {
    builder_.set_name(old_.empty() ? std::move(name) : old_ + "/" + name);
  }
  ~NameScope() { builder_.set_name(old_); }
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;

 private:
  Builder& builder_;
  std::string old_;
};

}  // namespace superstep::op
