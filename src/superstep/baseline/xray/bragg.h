// The conventional methods for Bragg peaks, on a whole file.
#pragma once

#include <vector>

#include "superstep/base/thread_pool.h"
#include "superstep/baseline/baseline.h"
#include "superstep/baseline/xray/bragg_position.h"
#include "superstep/physics/xray/bragg_dataset.h"

namespace superstep::baseline {

// Every peak of the data, on all threads, with a progress bar. Throws Error (interrupted).
std::vector<PeakFit> locate_all(BraggMethod method, const data::BraggDataset& peaks, ThreadPool& pool);

// Distances in px to the true centres. The data must have labels.
std::vector<double> position_errors(const std::vector<PeakFit>& fits, const data::BraggDataset& peaks);

// An HTML page with a sample of the patches, the worst of them, and the distribution of the errors.
void draw_fits(const std::filesystem::path& path, BraggMethod method, const std::vector<PeakFit>& fits,
               const data::BraggDataset& peaks);

Entry bragg_baseline_entry();

}  // namespace superstep::baseline
