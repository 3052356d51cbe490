// The law of networks beside the models of single machines, over the rows of tables that both predict.
#pragma once

#include <filesystem>
#include <vector>

#include "superstep/lab/validate/tables/folds.h"
#include "superstep/machine/rates/choices.h"

namespace superstep::lab {

// By style and mode; `folded` is of the same folder, with models and machines left out: without either there
// is nothing to compare. Throws what ApplicationRows throws.
std::vector<machine::Choice> choices_of(const std::filesystem::path& folder, const Folded& folded,
                                        const std::vector<Fold>& folds, int threads);

}  // namespace superstep::lab
