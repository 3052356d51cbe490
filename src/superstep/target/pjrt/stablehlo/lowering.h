// How a node of a graph becomes operations of StableHLO: one function an operator, in a table of its family.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/graph/graph.h"
#include "superstep/target/pjrt/stablehlo/emitter.h"
#include "superstep/target/pjrt/stablehlo/settled.h"

namespace superstep::target::stablehlo {

// What a lowering sees. Optional inputs left out are not valid.
struct Site {
  Emitter& emit;
  const graph::Graph& graph;
  const graph::Node& node;
  std::vector<Value> inputs;
  std::int64_t first_row = 0;              // ProgramOptions
  const std::vector<int>* uses = nullptr;  // by value, graph::Graph::use_counts(); null: all are read
  Settled* settled = nullptr;              // null: the program computes all itself

  const graph::Attributes& attributes() const { return node.attributes; }
  bool has(std::size_t input) const { return input < inputs.size() && inputs[input].valid(); }
  const Value& in(std::size_t input) const { return inputs[input]; }
  // Whether somebody reads an output.
  bool wants(std::size_t output) const {
    if (output >= node.outputs.size() || !node.outputs[output].valid()) return false;
    return !uses || (*uses)[node.outputs[output].index()] > 0;
  }
  const graph::ValueType& out(std::size_t output = 0) const { return graph.type(node.outputs[output]); }
  const Shape& out_shape(std::size_t output = 0) const { return out(output).shape; }

  // The elements of an input that is known when the program is written; null elsewhere.
  const Tensor* known(std::size_t input) const;
  // The same of integers. Throws Error (unsupported) naming the input where they are not known.
  std::vector<std::int64_t> integers(std::size_t input, std::string_view name) const;
  int axis(std::int64_t otherwise, int rank) const;  // attribute `axis`, from the front

  // Whether an input is settled before the program runs, so that another form of it costs no run anything.
  bool is_settled(std::size_t input) const;
  // That form of an input that is settled; `form` names what `make` does, for others that want the same.
  Value prepared(std::size_t input, const std::string& form, const Settled::Make& make) const;
};

// The results, as many as the node's outputs up to the last one wanted; those nobody wants may be none. Types
// may be wider than the node's (f32 for bf16): the results are converted.
using Lower = std::vector<Value> (*)(const Site& site);

// In which types floating inputs come.
enum class Inputs : std::uint8_t {
  as_they_are,
  widened,  // f16 and bf16 as f32: what computes rounds once, at its end
};

struct Lowering {
  std::string_view op;
  Lower lower;
  Inputs inputs = Inputs::widened;
  // Of an operator that has parts: whether the function takes this node; the others go as their parts. Null:
  // it takes all.
  bool (*takes)(const graph::Graph& graph, const graph::Node& node) = nullptr;
  // The input that the function takes by Site::prepared() alone where it is settled; -1: none.
  int kernel = -1;
};

// The families, in the folders of op/.
std::span<const Lowering> elementwise_lowerings();
std::span<const Lowering> activation_lowerings();
std::span<const Lowering> logic_lowerings();
std::span<const Lowering> product_lowerings();
std::span<const Lowering> convolution_lowerings();
std::span<const Lowering> window_lowerings();
std::span<const Lowering> move_lowerings();
std::span<const Lowering> index_lowerings();
std::span<const Lowering> rows_lowerings();
std::span<const Lowering> random_lowerings();
std::span<const Lowering> quantization_lowerings();
std::span<const Lowering> spectral_lowerings();
std::span<const Lowering> detection_lowerings();
std::span<const Lowering> recurrent_lowerings();

const Lowering* find_lowering(std::string_view op);

// How an operator becomes a program.
enum class Road : std::uint8_t {
  lowered,   // by a function of its own
  parts,     // as the operators it is made of
  constant,  // made before the program runs: of nothing, or of inputs that must be known
  refused,
};
Road road_of(std::string_view op);
// Of one node, which its operator's function may not take.
bool is_made_of_parts(const graph::Graph& graph, const graph::Node& node);
// Why an operator is refused; empty where it is not.
std::string_view refusal_of(std::string_view op);

// The results of a node. Throws Error (unsupported) naming the node.
std::vector<Value> lower_node(const Site& site);

}  // namespace superstep::target::stablehlo
