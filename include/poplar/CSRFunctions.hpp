// Control and status registers of tiles. The codelets' code runs on this host, in its rounding and without
// exceptions: the programs are legal and change nothing.
#ifndef poplar_CSRFunctions_hpp
#define poplar_CSRFunctions_hpp

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#pragma GCC visibility push(default)

namespace poplar {

struct FloatingPointBehaviour {
  bool inv, div0, oflo, esr,
      nanoo;  // exceptions: invalid, division by zero, overflow; stochastic rounding; NaN on overflow
  FloatingPointBehaviour(bool invalid = true, bool divisionByZero = true, bool overflow = true,
                         bool stochasticRounding = true, bool nanOnOverflow = true)
      : inv(invalid), div0(divisionByZero), oflo(overflow), esr(stochasticRounding), nanoo(nanOnOverflow) {}
};

void setFloatingPointBehaviour(Graph& graph, program::Sequence& sequence,
                               const FloatingPointBehaviour& behaviour,
                               const DebugContext& debugContext = {});
void setFloatingPointBehaviour(Graph& graph, program::Sequence& sequence, const Tensor& behaviour,
                               const DebugContext& debugContext = {});
Tensor getAndModifyFloatingPointBehaviour(Graph& graph, program::Sequence& sequence,
                                          const FloatingPointBehaviour& clear,
                                          const FloatingPointBehaviour& set,
                                          const DebugContext& debugContext = {});
void setStochasticRounding(Graph& graph, program::Sequence& sequence, bool enable,
                           const DebugContext& debugContext = {});

}  // namespace poplar

#pragma GCC visibility pop

#endif
