// Survival of tumour cells at single doses of one drug or two: the rows of a screen before its curves are
// summed up by their areas.
#pragma once

#include <memory>

#include "superstep/base/options.h"
#include "superstep/physics/generator.h"

namespace superstep::data {

struct UnoDoseSettings {
  int cells = 1, drugs = 1;
  double noise_low = 0, noise_high = 0, study_sd = 0, variance = 0;  // as those of the areas
};

// Half of the rows have one drug: then drug2_index is -1 and dose2 the lowest dose. Two drugs act
// independently (C. Bliss, Annals of Applied Biology 26, 585 (1939)): what survives both is the product of
// what survives each. Cells, drugs and curves are those of the areas of the same seed and settings.
std::unique_ptr<Generator> make_uno_dose_generator(const UnoDoseSettings& settings);

}  // namespace superstep::data
