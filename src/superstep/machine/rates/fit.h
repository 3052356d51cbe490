// How the constants of a law are found: Huber's loss of logarithms, damped Gauss-Newton steps, every kind
// drawn towards its parent and every factor towards one, and nothing kept that does not pay.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "superstep/machine/rates/law.h"

namespace superstep::machine {

void fit_laws(const std::vector<const MeasuredCall*>& calls, std::map<std::string, LawConstants>& constants,
              std::map<std::string, FittedLaws::Factor>& factors);

}  // namespace superstep::machine
