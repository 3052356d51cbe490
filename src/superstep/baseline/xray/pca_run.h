// The command that compresses the frames of a file by principal components.
#pragma once

#include "superstep/baseline/baseline.h"

namespace superstep::baseline {

// Takes the basis from the first frames of the file (see FrameFile) and compresses the others, or all when
// there are no others. Writes `mean` [h, w], `basis` [k, h, w], `eigenvalues` [k], `codes` [frames, k] of
// all frames. Reports, for k = 1, 4, 16, ... up to the number of components, how well frames come back,
// beside binning to the same size.
Report run_pca(const Request& request, const Options& options);
std::vector<OptionSpec> pca_options();

}  // namespace superstep::baseline
