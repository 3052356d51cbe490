// A page that shows a reconstructed scan.
#pragma once

#include <filesystem>

#include "superstep/baseline/ptychography/epie_run.h"

namespace superstep::baseline {

// Amplitude and phase of the object, true and reconstructed, over the scanned area; the probe; the error
// of every pass; where it began with a network's answers, those stitched, and both courses. A path that ends
// with .png gets the pictures of the object alone.
void write_epie_page(const std::filesystem::path& path, const EpieResult& result, const PtychoFile& file);

}  // namespace superstep::baseline
