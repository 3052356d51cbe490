#include "superstep/design/latin_hypercube.h"

#include <numeric>
#include <utility>
#include <vector>

#include "superstep/base/random.h"

namespace superstep::design {

Eigen::MatrixXd latin_hypercube(int count, Eigen::Index dimensions, std::uint64_t seed,
                                std::uint32_t purpose) {
  Eigen::MatrixXd points(count, dimensions);
  for (Eigen::Index d = 0; d < dimensions; ++d) {
    RandomStream random(seed, static_cast<std::uint64_t>(d), purpose);
    std::vector<int> slices(static_cast<std::size_t>(count));
    std::iota(slices.begin(), slices.end(), 0);
    for (std::size_t k = slices.size(); k > 1; --k) std::swap(slices[k - 1], slices[random.below(k)]);
    for (int k = 0; k < count; ++k)
      points(k, d) = (slices[static_cast<std::size_t>(k)] + random.uniform()) / count;
  }
  return points;
}

}  // namespace superstep::design
