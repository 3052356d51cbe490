// Points spread over the unit cube so that each of `count` slices along every axis holds one of them.
#pragma once

#include <Eigen/Dense>
#include <cstdint>

namespace superstep::design {

// [count, dimensions] in [0, 1) (M. D. McKay, R. J. Beckman and W. J. Conover, Technometrics 21, 239 (1979));
// a function of its arguments alone.
Eigen::MatrixXd latin_hypercube(int count, Eigen::Index dimensions, std::uint64_t seed,
                                std::uint32_t purpose);

}  // namespace superstep::design
