#include "tests/cpu_kernels/support/random_strides.h"

#include <numeric>

namespace superstep::kernels {

std::int64_t draw(RandomStream& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

std::vector<std::int64_t> scattered_strides(RandomStream& random, const std::vector<std::int64_t>& extents,
                                            std::int64_t& size) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<std::int64_t> strides(extents.size());
  size = 1;
  for (std::size_t axis : order) {
    strides[axis] = size;
    size *= extents[axis] + draw(random, 0, 1);
  }
  return strides;
}

}  // namespace superstep::kernels
