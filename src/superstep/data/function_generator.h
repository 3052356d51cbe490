// A smooth function of sixteen variables, linear in part and in part not (workload mlp).
#pragma once

#include "superstep/data/generator.h"

namespace superstep::data {

inline constexpr std::int64_t function_variables = 16;

GeneratorEntry function_generator();  // "mlp"

}  // namespace superstep::data
