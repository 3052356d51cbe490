// U-Net with batch normalisation, as it marks tumours in slices of brain MRI (M. Buda, A. Saha, M.
// Mazurowski, Comput. Biol. Med. 109, 2019).
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// image f32 [N, 3, 256, 256] -> mask f32 [N, 1, 256, 256], the probability of each pixel.
Workload unet_256();
// The same with 16 channels, two levels and 64x64 pixels.
Workload unet_64();

}  // namespace superstep::workload
