// Recurrent layers in double by their definition (ONNX's without bias; gates of an LSTM in the order input,
// output, forget, cell, of a GRU update, reset, candidate), for one sequence: what measured ones are checked
// against.
#pragma once

#include <cstdint>
#include <vector>

#include "superstep/base/tensor.h"
#include "superstep/lab/bench/configurations.h"

namespace superstep::lab {

using RecurrentSample = std::vector<double>;  // [steps][inputs]

class RecurrentReference {
 public:
  enum class By { x, w, r };

  // w [1, gates hidden, inputs], r [1, gates hidden, hidden].
  RecurrentReference(const Primitive& shape, const Tensor& w, const Tensor& r);

  RecurrentSample sample_of(const Tensor& x, std::int64_t sample) const;  // x [batch, steps, inputs]
  std::vector<double> forward(const RecurrentSample& x) const;            // y [steps][hidden]

  // A random direction in the space of x, w or r, its elements in [-1, 1).
  std::vector<double> direction(By by, std::uint64_t seed) const;
  // d/de of cotangent . y at `by` + e direction, by central differences.
  double directional_derivative(const RecurrentSample& x, By by, const std::vector<double>& direction,
                                const std::vector<double>& cotangent) const;

 private:
  std::vector<double> forward(const RecurrentSample& x, const std::vector<double>& w,
                              const std::vector<double>& r) const;

  PrimitiveKind kind_;
  std::size_t steps_, inputs_, hidden_, gates_;
  std::vector<double> w_, r_;
};

}  // namespace superstep::lab
