// Uno's other form: the survival of cells at single doses of one drug or two, instead of the area under a
// curve.
//
// cell f32 [N, 942]; drug1_descriptors, drug2_descriptors f32 [N, 5270]; drug1_fingerprints,
// drug2_fingerprints f32 [N, 2048]; dose1, dose2 f32 [N, 1] -> growth f32 [N, 1]. The drugs share their
// sub-networks: 21,275,001 parameters of width 1000.
#pragma once

#include <cstdint>
#include <memory>

#include "superstep/base/options.h"
#include "superstep/graph/graph.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Options: width, dropout, mean.
graph::Graph build_uno_dose(std::int64_t batch, const Options& options, std::uint64_t seed);

// The generator's rows, or a file of them: tables cell_rnaseq, drug_descriptors and drug_fingerprints, and
// cell_index, drug1_index, drug2_index (-1: no second drug), dose1, dose2 (log10 mol/l), growth.
std::unique_ptr<Task> open_uno_dose(const TaskSettings& settings);

// Rows [n, columns] with columns brought to mean 0 and variance 1; those that do not vary become 0. NaN takes
// no part and becomes 0, the mean.
Tensor standardised_columns(const Tensor& table);

}  // namespace superstep::workload
