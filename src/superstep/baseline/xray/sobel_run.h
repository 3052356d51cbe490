// The command that runs the Sobel filter over the frames of a file.
#pragma once

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

// Frames of 16 bits (see FrameFile); writes `gx`, `gy` (i32) and `mag` (f32) [frames, height, width] of the
// chosen window, and measures every window that the option `sweep` names.
Report run_sobel(const Request& request, const Options& options);
std::vector<OptionSpec> sobel_options();

}  // namespace superstep::baseline
