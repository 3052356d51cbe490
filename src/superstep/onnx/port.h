// What a model takes and gives, as its file declares it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "superstep/base/element_type.h"

namespace superstep::onnx {

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

}  // namespace superstep::onnx
