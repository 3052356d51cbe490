// What a file holds and what of it cannot be imported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace superstep::onnx {

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

// What is wrong with many nodes of an operator is told once, with their count: a line each, in their order.
std::vector<std::string> told(const std::vector<Finding>& findings);

// A floating initialiser that nodes of the imported graph read.
struct Initializer {
  enum class Kind : std::uint8_t {
    kept,        // scalars, masks, scales of a resizing, ...: what nobody asked to train
    trained,     // weights, and what somebody asked for
    statistics,  // running means and variances of a normalisation: kept up to date in training
  };
  std::string name;
  std::int64_t elements = 0;
  Kind kind = Kind::kept;
};
// "trained: 124 of 151 initialisers, 1.2 M values; not: eps, mask, and 3 more; statistics: 22". Names beyond
// `most_names` are counted.
std::string to_string(const std::vector<Initializer>& initializers, std::size_t most_names = 8);

// What a file holds and asks for.
struct Findings {
  std::vector<Finding> unsupported;      // empty: the file can be imported
  std::vector<OperatorCount> operators;  // of the file, functions and subgraphs included, most frequent first
  std::int64_t parameters = 0;           // elements of floating initialisers that nodes read
  std::int64_t parameter_bytes = 0;
  std::vector<Initializer> initializers;  // when parameters become states: what becomes of each
  std::int64_t nodes = 0;                 // of the imported graph
  double flops = 0, bytes = 0;            // of one run of it: a multiply-accumulate counts two; see op::cost
  bool importable() const { return unsupported.empty(); }
};

}  // namespace superstep::onnx
