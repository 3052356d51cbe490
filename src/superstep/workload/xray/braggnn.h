// BraggNN: the centre of a diffraction peak to a fraction of a pixel, from an 11x11 patch of the detector.
//
// Z. Liu et al., "BraggNN: fast X-ray Bragg peak analysis using deep learning", IUCrJ 9, 104-113 (2022),
// arXiv 2008.08198.
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// patch f32 [N, 1, p, p], scaled to [0, 1] -> ploc f32 [N, 2]: column and row of the centre, counted from
// the patch's first pixel, divided by p.
//
// Options: patch (odd, 9 to 23), hidden (the widths of the fully connected layers: "16-8-4-2",
// "32-16-8-4", "64-32-16-8"), centred.
//
// With `centred` the network gives the place relative to the middle of the patch, and the graph adds 0.5.
// Fitting that sum to labels in [0, 1) is the same as fitting the network to labels minus 0.5, which is
// how the network is trained best; but what goes in and what comes out is in [0, 1), as in data files,
// whichever way a model was trained.
Workload braggnn();

}  // namespace superstep::workload
