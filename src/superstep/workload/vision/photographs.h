// Labelled pictures, for the classifiers: what others reach on them, and generated ones of textured shapes.
#pragma once

#include "superstep/workload/table.h"

namespace superstep::workload {

// The most frequent class of the training samples, and a support vector machine on oriented gradients.
// `images`: u8 [n, channels, height, width].
References image_references(const Tensor& images, const Tensor& labels, const TableSamples& samples);

// Pictures of at most 100 classes, in the size of the model's option.
std::unique_ptr<Task> open_photographs(const TaskSettings& settings, const Options& model);

}  // namespace superstep::workload
