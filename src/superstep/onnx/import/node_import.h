// A node of an ONNX file on its way into the graph: what adapters see.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/onnx/emitter.h"
#include "superstep/onnx/wire/proto.h"

namespace superstep::onnx {

// Imports a subgraph (the bytes of a GraphProto) with these values for its inputs, inside the scope of the
// node; `label` goes before the names of its values. Throws Error, or AlreadyReported when what is wrong with
// it has been recorded.
using RunSubgraph =
    std::function<std::vector<Var>(Bytes graph, const std::vector<Var>& arguments, const std::string& label)>;

// Thrown where something failed that the findings already tell.
struct AlreadyReported {};

struct NodeImport {
  Emitter& emitter;
  std::string_view op, domain;
  std::int64_t opset = 0;
  std::vector<Var> inputs;                              // invalid: left out
  std::vector<bool> wanted;                             // by output: false where left out
  Attributes attributes;                                // adapters may change these
  std::map<std::string, Bytes, std::less<>> subgraphs;  // attributes that are graphs
  RunSubgraph run_subgraph;
  // How long a result may be whose length depends on the data; -1: as long as it can get.
  std::optional<std::int64_t> bound = {};

  bool has(std::size_t input) const { return input < inputs.size() && inputs[input].valid(); }
  bool wants(std::size_t output) const { return output < wanted.size() && wanted[output]; }
  Var input(std::size_t position) const;  // throws Error (bad_graph) when left out
  int output_count() const { return static_cast<int>(wanted.size()); }

  // The elements of an input that must be known at import; throws Error (unsupported) naming it.
  const Tensor& known(std::size_t input, std::string_view name);
  std::vector<std::int64_t> known_integers(std::size_t input, std::string_view name);
  std::int64_t known_integer(std::size_t input, std::string_view name);  // of one element, of any type

  // An attribute taken away, so that it is not passed on.
  std::int64_t take_integer(std::string_view name, std::int64_t otherwise);
  double take_number(std::string_view name, double otherwise);
  std::vector<std::int64_t> take_integers(std::string_view name);
  // Puts a value in the place of an input that was left out.
  void set_input(std::size_t position, Var value);

  // The node as it is, or under another name, with the inputs and attributes as they are now.
  std::vector<Var> pass(std::string_view name) {
    return emitter.emit(name, inputs, attributes, output_count());
  }
  std::vector<Var> pass() { return pass(op); }
};

[[noreturn]] void refuse_node(const std::string& reason, const std::string& hint = {});

}  // namespace superstep::onnx
