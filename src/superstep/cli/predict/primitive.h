// superstep predict PRIMITIVE --on MACHINE: a product, a convolution, a layer or an all-reduce by its name.
#pragma once

#include <CLI/CLI.hpp>

#include "superstep/lab/primitive/prediction.h"

namespace superstep::cli {

struct PrimitiveCall {
  lab::PrimitiveQuestion question;
  bool explain = false, provenance = false, extrapolate = false;
};

// Throws Error (invalid_argument) for an option of `command` that primitives do not have.
void predict_primitive(const CLI::App& command, const machine::Machine& machine, const PrimitiveCall& call);

}  // namespace superstep::cli
