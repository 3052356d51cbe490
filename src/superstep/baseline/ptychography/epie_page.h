// A page that shows a reconstructed scan.
#pragma once

#include <filesystem>

#include "superstep/baseline/ptychography/epie_run.h"

namespace superstep::baseline {

// Amplitude and phase of the object, true and reconstructed, over the scanned area; the probe; the error
// of every pass. A path that ends with .png gets the four pictures of the object alone. `height` and `width`
// are the object's, `n` is a side of the probe.
void write_epie_page(const std::filesystem::path& path, const EpieResult& result, int height, int width,
                     int n);

}  // namespace superstep::baseline
