// Values that are settled before a program runs, as those who write it ask for them.
#pragma once

#include <functional>
#include <string>

#include "superstep/graph/graph.h"
#include "superstep/target/pjrt/stablehlo/emitter.h"

namespace superstep::target::stablehlo {

class Settled {
 public:
  using Make = std::function<Value(Emitter& emit, const Value& x)>;

  virtual ~Settled() = default;
  // Whether the program need not make a node's results.
  virtual bool takes(const graph::Node& node) const = 0;
  // Whether another form of a value costs no run anything: not of constants that the program itself holds.
  virtual bool holds(graph::ValueId id) const = 0;
  // The node that only gives a settled value another shape; null: none does.
  virtual const graph::Node* view_of(graph::ValueId id) const = 0;
  // A settled value as an argument of the program, or another form of it, made once for all who ask for it by
  // the same name; "": as it is.
  virtual Value value(graph::ValueId id, const std::string& form, const Make& make) = 0;
  Value value(graph::ValueId id) {
    return value(id, "", [](Emitter&, const Value& x) { return x; });
  }
};

}  // namespace superstep::target::stablehlo
