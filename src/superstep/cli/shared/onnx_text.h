// A model file in words, as `onnx check` and `show` print it.
#pragma once

#include "superstep/onnx/model.h"

namespace superstep::cli {

void print_model(const onnx::Model& model, bool metadata);

// Extents that the file leaves open and that nobody gave.
void print_open_extents(const onnx::Model& model, const onnx::ImportOptions& options);

void print_findings(const onnx::Findings& findings);

}  // namespace superstep::cli
