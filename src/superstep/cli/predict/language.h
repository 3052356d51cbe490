// Predictions of language models: does it fit, how fast are requests, or training.
#pragma once

#include "superstep/cli/predict/by_law.h"
#include "superstep/machine/rates/machines.h"

namespace superstep::cli {

void predict_language(const CLI::App& command, const LawQuestion& question, const machine::SheetFacts& sheet);

}  // namespace superstep::cli
