// Samples to train on and samples to validate on, from files of their own.
#pragma once

#include <memory>
#include <string>

#include "superstep/file/source/sample_source.h"

namespace superstep::data {

// All rows of `training`, which train, and behind them all rows of `validation`, which do not; the names are
// for errors. Throws Error: bad_file naming the array that is not the same in both, or where there are no
// rows; invalid_argument where `training` says itself which of its rows train.
std::unique_ptr<SampleSource> with_validation(std::unique_ptr<SampleSource> training,
                                              std::string training_name,
                                              std::unique_ptr<SampleSource> validation,
                                              std::string validation_name);

}  // namespace superstep::data
