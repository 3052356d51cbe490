// A result as a benchmark of one product leaves it, without what it measured: tests of results add that.
#pragma once

#include <nlohmann/json.hpp>

#include "superstep/record/result.h"

namespace superstep {

inline record::Result sample_result(const std::string& mode = "train", std::int64_t batch = 2560) {
  record::Result result{
      .command = "bench", .id = "gemm_k4-" + mode + "-f32", .created = "2026-01-31T12:00:00+00:00"};
  result.workload = "gemm_k4";
  result.mode = mode;
  result.parameters = {{"kind", "gemm"}, {"m", 2560}, {"n", 2560}, {"k", 2560}};
  result.flop_per_sample = 1.0 / 3;
  result.config = {{"precision", "f32"}, {"batch", batch}, {"threads", 2}, {"seed", 1}};
  result.environment = {{"date", "2026-01-31T12:00:00+00:00"},
                        {"host", {{"hostname", "a \"host\""}, {"load", {{"busy", true}}}}}};
  result.program = {{"version", "0.1.0"}};
  return result;
}

}  // namespace superstep
