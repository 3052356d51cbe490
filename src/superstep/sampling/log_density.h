// What is sampled: the logarithm of a density over real numbers, and its gradient.
#pragma once

#include <cstddef>
#include <span>

namespace superstep::sampling {

// One thread at a time asks one of them. Both functions give the same bits whenever they are asked for the
// same position.
class LogDensity {
 public:
  virtual ~LogDensity() = default;
  virtual std::size_t size() const = 0;  // of a position

  // The log density at `position` in nats, up to a constant, and its gradient, both of size() numbers. A
  // value that is not finite means that the position is outside of what has a density: samplers do not go
  // there. May throw Error (interrupted) when the user asked to stop: what was under way is then dropped as a
  // whole.
  virtual double evaluate(std::span<const double> position, std::span<double> gradient) = 0;

  // The same without the gradient, for methods that need none.
  virtual double value(std::span<const double> position) = 0;
};

}  // namespace superstep::sampling
