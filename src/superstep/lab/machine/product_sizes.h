// Rates of square products by their size, and where they come to half of the best.
#pragma once

#include <vector>

namespace superstep::lab {

struct ProductRates {
  std::vector<double> flops, rates;  // by size, ascending: FLOP, FLOP/s
};

// The size, in FLOP, where the rate passes half of the best: interpolated between sizes on logarithms.
double half_rate_flops(const ProductRates& products);

}  // namespace superstep::lab
