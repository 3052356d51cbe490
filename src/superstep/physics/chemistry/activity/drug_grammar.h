// Molecules as medicinal chemists make them, written by a grammar: two or three rings, what links them, and
// what stands at their free places.
#pragma once

#include <string>

#include "superstep/base/random.h"

namespace superstep::data {

// SMILES of a molecule of about 25 atoms; its bits are those of the stream.
std::string draw_drug(RandomStream& random);

}  // namespace superstep::data
