#include "superstep/lab/machine/product_sizes.h"

#include <algorithm>
#include <cmath>

namespace superstep::lab {

double half_rate_flops(const ProductRates& products) {
  const double half = std::ranges::max(products.rates) / 2;
  for (std::size_t i = 0; i < products.rates.size(); ++i) {
    if (products.rates[i] < half) continue;
    if (i == 0) return products.flops[0];
    const double share = (half - products.rates[i - 1]) / (products.rates[i] - products.rates[i - 1]);
    return std::exp(std::log(products.flops[i - 1]) +
                    share * std::log(products.flops[i] / products.flops[i - 1]));
  }
  return products.flops.back();
}

}  // namespace superstep::lab
