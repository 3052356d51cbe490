// Growth curves of atomic layer deposition for settings drawn at random, with measurement noise.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

// --out NAME.csv writes a table: one line a sample, settings and then the growth of every cycle.
GeneratorEntry ald_generator();

}  // namespace superstep::data
