// Which versions are read, what an import may be told about a model's inputs, and its bounds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::onnx {

// What is read.
inline constexpr int oldest_opset = 1, newest_opset = 28, newest_ir_version = 14;

// Initialisers that are trained beside those that are weights, and weights that are not: names, in which * is
// any letters and ? is one.
struct TrainChoice {
  std::vector<std::string> train, freeze;
};

// How long results may be whose length depends on the data (NonZero, Compress, NonMaxSuppression, TopK): of
// nodes of this name, or that give a value of it; * is any letters and ? is one. -1: as long as they can get.
struct Bound {
  std::string name;
  std::int64_t most = -1;
};

// The output, i64 of no axes, of graphs that leave results out where bounds have no room for them: how many.
inline constexpr std::string_view beyond_bounds = "beyond_bounds";

struct ImportOptions {
  std::map<std::string, std::vector<std::int64_t>, std::less<>>
      shapes;                                                // by input; -1 keeps what the file says
  std::map<std::string, std::int64_t, std::less<>> symbols;  // symbolic extents by name ("batch" -> 4)
  // Inputs whose elements are known. They stay inputs; where a shape needs their elements, or a branch or a
  // trip count does, these are taken as constant.
  std::map<std::string, Tensor, std::less<>> values;
  // Initialisers that are trained become states (onnx/parameters.h), else they are constants as all others.
  bool parameters_as_state = false;
  TrainChoice choice = {};
  // The first that fits a node is taken.
  std::vector<Bound> bounds = {};
  std::int64_t default_extent = 1;   // for symbols that nobody bound, and extents without a name
  std::int64_t most_nodes = 200000;  // of the graph: what unrolled loops may grow to
};

}  // namespace superstep::onnx
