// The parts of the transformer encoders, that their files share: model.cpp (with the workloads themselves),
// data.cpp, pictures.cpp.
#pragma once

#include <memory>
#include <string>

#include "superstep/workload/generated.h"
#include "superstep/workload/task.h"

namespace superstep::workload {

// Blocks of a synthetic language with masked words.
std::unique_ptr<Task> open_masked_words(const TaskSettings& settings, const Options& model);

// Masked words in their sentences, and what the model would put there.
std::string present_masked_words(const Fields& fields, const Predictions& found, page::Page& page);

}  // namespace superstep::workload
