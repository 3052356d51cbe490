// What an operator is: the facts about it, its shape rule, its derivative rules, its cost and its reference
// evaluation.
//
// One file an operator family (op/elementwise.cpp, op/product/convolution.cpp, ...) defines its operators and
// lists them in one function; op/table.cpp puts the families together. A target that has a faster way to run
// an operator keeps it in its own folder.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/graph/graph.h"
#include "superstep/op/core/builder.h"
#include "superstep/op/core/traits.h"

namespace superstep::op {

using graph::Attributes;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using graph::ValueType;

// What a shape rule sees. Optional inputs left out are null.
struct InferContext {
  const Attributes& attributes;
  std::vector<const ValueType*> inputs;
  std::vector<const Tensor*> constants;  // the elements of an input where they are known, else null
  std::size_t output_count;              // outputs the node has; a rule may give more

  bool has(std::size_t input) const { return input < inputs.size() && inputs[input]; }
  const ValueType& input(std::size_t index) const;  // throws Error (bad_graph) when left out
  // The elements of an integer input that must be known when the graph is compiled (a shape, axes).
  std::vector<std::int64_t> known_integers(std::size_t index, std::string_view what) const;
};

// Floating-point operations (a multiply-accumulate counts two) and bytes that must move when every input
// is read once and every output written once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// What an evaluation sees: outputs are allocated with the types the shape rule gave, zeroed.
struct EvaluateContext {
  const Attributes& attributes;
  std::vector<const Tensor*> inputs;  // null where left out
  std::vector<Tensor*> outputs;       // null where left out

  bool has(std::size_t input) const { return input < inputs.size() && inputs[input]; }
  const Tensor& input(std::size_t index) const { return *inputs[index]; }
  bool wants(std::size_t output) const { return output < outputs.size() && outputs[output]; }
  Tensor& output(std::size_t index) const { return *outputs[index]; }
};

// What a derivative rule sees. It is written with the public operators (op/*.h), so that its result can be
// differentiated again.
struct DerivativeContext {
  Builder& builder;
  const Attributes& attributes;
  std::vector<Var> inputs;   // invalid where left out
  std::vector<Var> outputs;  // invalid where left out

  bool has(std::size_t input) const { return input < inputs.size() && inputs[input].valid(); }
};

struct Box;  // op/core/box.h

struct Definition {
  std::string_view name;               // "Conv"; ours beyond ONNX: "superstep.ConvWeightGradient"
  int since_opset = 1;                 // first ONNX operator set with this meaning; 0 for ours
  int min_inputs = 1, max_inputs = 1;  // max -1: any number
  int min_outputs = 1, max_outputs = 1;
  Traits traits = {};  // the facts about it

  // The types of all outputs; throws Error (bad_graph) naming the input and what was expected.
  std::vector<ValueType> (*infer)(const InferContext& context) = nullptr;
  // Arithmetic only; bytes are counted from the types. Null: one operation an output element.
  double (*flops)(const Attributes& attributes, std::span<const ValueType> inputs,
                  std::span<const ValueType> outputs) = nullptr;
  // The definition, naive and exact: floating types are computed in double and rounded once.
  void (*evaluate)(const EvaluateContext& context) = nullptr;
  // The same for a box of output 0 alone (and of other outputs of its shape): outputs, and inputs of that
  // shape, are those of the box, others whole. For operators whose elements depend on their place in the
  // whole (random numbers).
  void (*evaluate_box)(const EvaluateContext& context, const Box& box) = nullptr;
  // Reverse mode (vector-Jacobian product): from the cotangents of the outputs (invalid = zero) the
  // cotangents of those inputs that are `wanted`; an invalid result means zero. Null: not differentiable.
  std::vector<Var> (*vjp)(const DerivativeContext& context, std::span<const Var> cotangents,
                          const std::vector<bool>& wanted) = nullptr;
  // Forward mode (Jacobian-vector product): from the tangents of the inputs (invalid = zero; at least one
  // is valid) the tangents of the outputs. Null: not differentiable.
  std::vector<Var> (*jvp)(const DerivativeContext& context, std::span<const Var> tangents) = nullptr;
  // The same computation in plain ONNX operators, for operators that are ours; gives the outputs.
  std::vector<Var> (*decompose)(const DerivativeContext& context) = nullptr;
  // Inputs whose values (not only shapes) must be known when a graph is compiled, as a bit set: shapes, axes.
  std::uint32_t shape_inputs = 0;
  // True when the output depends on more than inputs and attributes; such nodes are never merged or folded.
  bool has_effects = false;
};

// Every operator, in the order `superstep list ops` shows them.
std::span<const Definition> all();
const Definition* find(std::string_view name);   // null when there is none
const Definition& get(std::string_view name);    // throws Error (unsupported) with the nearest name
const Traits& traits_of(std::string_view name);  // those of an operator that there is not: all defaults

// An operator beyond the table, for as long as this lives: find(), and all that reads a definition, know it;
// all() does not list it. For tests and trials, before graphs with it are made and on one thread.
class AddedOperator {
 public:
  explicit AddedOperator(const Definition& definition);  // throws Error (invalid_argument): facts are missing
  ~AddedOperator();
  AddedOperator(const AddedOperator&) = delete;
  AddedOperator& operator=(const AddedOperator&) = delete;

 private:
  Definition definition_;
};

// What the definition must state and does not, or states against itself: "elements: state .elements ...".
// Empty when all is there.
std::vector<std::string> missing_facts(const Definition& definition);

// The types of a node's outputs: the rule that graph::verify takes.
Result<std::vector<ValueType>> infer_types(const Graph& graph, const Node& node);

Cost cost(const Graph& graph, const Node& node);
Cost cost(const Graph& graph);  // the sum over all nodes

}  // namespace superstep::op
