// Writing results limited to the range of an integer type.
#pragma once

#include <algorithm>
#include <limits>

#include "superstep/op/core/wide.h"

namespace superstep::op {

template <class T>
T limited_to(double value) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if (value != value) return T{};
  if (value <= low) return std::numeric_limits<T>::min();
  return value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value);
}

// To an integer tensor, limited to its range; the values are whole numbers already.
inline void narrow_limited(const std::vector<double>& values, Tensor& target) {
  dispatch(target.type(), [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      std::ranges::transform(values, target.as<T>().begin(), limited_to<T>);
  });
}

}  // namespace superstep::op
