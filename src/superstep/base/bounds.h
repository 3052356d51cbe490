// A value between two bounds as a sine of a parameter without bounds, so that a minimum at a bound is one
// inside (F. James and M. Roos, Comput. Phys. Commun. 10, 343 (1975)).
#pragma once

#include <algorithm>
#include <cmath>

namespace superstep {

struct Bounds {
  double low, high;

  template <class T>
  T value(const T& parameter) const {
    using std::sin;
    return low + (high - low) * (0.5 + 0.5 * sin(parameter));
  }
  // d value / d parameter.
  double slope(double parameter) const { return (high - low) * 0.5 * std::cos(parameter); }
  // Of a value inside; one at or beyond a bound is first moved in, since at the bound itself the slope is 0.
  double parameter(double inside) const {
    const double share = std::clamp((inside - low) / (high - low), 0.01, 0.99);
    return std::asin(2 * share - 1);
  }
};

}  // namespace superstep
