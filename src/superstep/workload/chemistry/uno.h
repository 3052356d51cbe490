// CANDLE's Uno benchmark (Pilot 1): how strongly a drug inhibits a tumour cell line, from the cell's gene
// expression and the drug's molecular descriptors.
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// cell f32 [N, 942], drug f32 [N, 5270] -> auc f32 [N, 1].
Workload uno();

}  // namespace superstep::workload
