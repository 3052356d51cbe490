// Recurrent layers: a small sequence regression, and the four LSTM kernels of Emani et al., "A Comprehensive
// Evaluation of Novel AI Accelerators for Deep Learning Workloads" (PMBS 2022), table IX.
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// x f32 [N, 50, 32] -> two LSTMs of 128 units -> y f32 [N, 1], from the last state.
Workload lstm();

// x f32 [N, steps, inputs] -> one LSTM -> y f32 [N, hidden], its last state; number 1 to 4. Steps, batch,
// inputs, hidden: 50, 64, 256, 256; 25, 32, 512, 512; 25, 16, 512, 512; 50, 32, 512, 512.
Workload rnn_kernel(int number);

}  // namespace superstep::workload
