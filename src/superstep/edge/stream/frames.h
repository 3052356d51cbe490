// Frames to send: of a workload's generator, or of a file.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "superstep/base/tensor.h"

namespace superstep::edge {

// `what`: a workload, whose data are generated, or a file of arrays (.npy, .npz, .h5, .safetensors), whose
// `dataset` (empty: the only one) has a row per frame. At most `most` of them. Throws Error: not_found,
// invalid_argument, unsupported (a workload whose model takes several inputs).
struct FrameSource {
  Tensor pixels;                                     // a row per frame
  std::vector<std::pair<double, double>> positions;  // (y, x) in m: a file's `position` [n, 2]; else empty
};
FrameSource frames_of(const std::string& what, const std::string& dataset, std::int64_t most,
                      std::uint64_t seed, int threads);

}  // namespace superstep::edge
