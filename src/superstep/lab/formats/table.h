// Results as tables for the terminal.
#pragma once

#include <string>
#include <vector>

#include "superstep/record/result.h"

namespace superstep::lab {

std::string result_table(const std::vector<record::Result>& results);
std::string one_line(const record::Result& result);  // "gemm_k4 train f32: 182 ms, 552 GFLOP/s"

// Every metric of one result with its interval, then its configuration.
std::string result_details(const record::Result& result);

}  // namespace superstep::lab
