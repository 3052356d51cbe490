// ONNX files: opened, described, checked and turned into graphs.
//
// Opening maps the file into memory and reads its structure; tensors stay where they are until import() asks
// for their elements, so a file of gigabytes opens at once. Files are hostile until shown otherwise: every
// length is checked against what is left of the file, nesting is bounded, external data may lie only in
// files below the model's own folder.
//
// Operator sets 1 to 28 of the default domain are read; forms of older sets become the present ones
// (onnx/adapters.h). Control flow is resolved at import (onnx/control_flow.cpp), calls of functions of the
// model are replaced by the function's nodes, sequences inside a model are taken apart (onnx/sequence.cpp).
// Strings, maps, and sequences and optionals that go in or out have no place in a graph of tensors and are
// refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "superstep/base/error.h"
#include "superstep/base/tensor.h"
#include "superstep/graph/graph.h"

namespace superstep::onnx {

inline constexpr int oldest_opset = 1, newest_opset = 28, newest_ir_version = 14;

// One extent of a port as the file declares it: a number, a named symbol, or neither.
struct Extent {
  std::int64_t value = -1;  // -1: not a number
  std::string symbol;       // empty: no name either
};
std::string to_string(const Extent& extent);  // "224", "batch", "?"

// An input or an output of the model.
struct Port {
  std::string name;
  std::string type;                    // "f32", or what a graph cannot hold: "string", "sequence of f32"
  std::optional<ElementType> element;  // empty: of a type that a graph cannot hold
  bool has_shape = false;              // false: not even the rank is declared
  std::vector<Extent> extents;
  std::string doc;
};
std::string to_string(const Port& port);  // "f32[batch,3,224,224]"

struct ImportOptions {
  std::map<std::string, std::vector<std::int64_t>, std::less<>>
      shapes;                                                // by input; -1 keeps what the file says
  std::map<std::string, std::int64_t, std::less<>> symbols;  // symbolic extents by name ("batch" -> 4)
  // Inputs whose elements are known. They stay inputs; where a shape needs their elements, or a branch or a
  // trip count does, these are taken as constant.
  std::map<std::string, Tensor, std::less<>> values;
  bool parameters_as_state = false;  // floating initialisers that nodes read become state, else constants
  std::int64_t default_extent = 1;   // for symbols that nobody bound, and extents without a name
  std::int64_t most_nodes = 200000;  // of the graph: what unrolled loops may grow to
};

// Something that the file asks for and that cannot be imported.
struct Finding {
  std::string where;       // "node 'conv1'", "input 'words'"
  std::string op;          // "Conv"; "com.example.Foo" outside the default domain; empty: not a node
  std::int64_t opset = 0;  // the operator set the node is of; 0: not a node
  std::string reason;
};
std::string to_string(const Finding& finding);  // one line

struct OperatorCount {
  std::string op;
  std::int64_t count = 0;
};

// What a file holds and asks for.
struct Findings {
  std::vector<Finding> unsupported;      // empty: the file can be imported
  std::vector<OperatorCount> operators;  // of the file, functions and subgraphs included, most frequent first
  std::int64_t parameters = 0;           // elements of floating initialisers that nodes read
  std::int64_t parameter_bytes = 0;
  std::int64_t nodes = 0;       // of the imported graph
  double flops = 0, bytes = 0;  // of one run of it: a multiply-accumulate counts two; see op::cost
  bool importable() const { return unsupported.empty(); }
};

struct File;  // the mapped file and its structure (onnx/file.h)

class Model {
 public:
  // Throws Error (not_found, io, bad_file, unsupported for an IR version or operator set that is too new or
  // too old).
  static Model open(const std::filesystem::path& path);
  // From memory, which is copied. External data are refused.
  static Model parse(std::span<const std::byte> bytes, const std::string& name = "model");

  const std::string& path() const;
  std::int64_t ir_version() const;
  std::string producer() const;  // name and version
  std::string doc() const;
  std::string graph_name() const;
  const std::map<std::string, std::int64_t>& opsets() const;  // by domain; "" is the default one
  const std::map<std::string, std::string>& metadata() const;
  const std::vector<Port>& inputs() const;  // without those that have an initialiser
  const std::vector<Port>& outputs() const;

  // The graph at the extents that the options give. Values keep their ONNX names. Throws Error: unsupported,
  // bad_graph or bad_file, naming the nodes it cannot take (all of them, the first ten in the message).
  graph::Graph import(const ImportOptions& options = {}) const;

  // Everything that is in the way of an import, at once. Never throws for what the file holds.
  Findings check(const ImportOptions& options = {}) const;

 private:
  explicit Model(std::shared_ptr<const File> file);
  std::shared_ptr<const File> file_;
};

// A file that holds one TensorProto, as ONNX's test data have them. Throws Error (not_found, bad_file,
// unsupported: an element type that a Tensor does not have, or another kind of value).
Tensor read_tensor_file(const std::filesystem::path& path);

}  // namespace superstep::onnx
