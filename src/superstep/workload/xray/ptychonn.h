// PtychoNN: amplitude and phase of a sample from one coherent diffraction pattern (M. Cherukara et al., Appl.
// Phys. Lett. 117, 044103, 2020), and its smaller, phase-only form for the beamline (A. Babu et al., Nat.
// Commun. 14, 7059, 2023).
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// diff f32 [N, 1, 64, 64] -> amp, phase f32 [N, 1, 64, 64].
Workload ptychonn_64();
// diff f32 [N, 1, 128, 128] -> phase f32 [N, 1, 128, 128].
Workload ptychonn_128();

}  // namespace superstep::workload
