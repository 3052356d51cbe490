// Glass transition temperatures of polymers (workloads polymer-gcn and polymer-mpnn).
//
// Tg = [additive method] + side-chain and meta corrections - K/Mn (Fox and Flory 1950), measured with noise.
// Samples 0 .. repeat_unit_count()-1 are all the repeat units in an order shuffled by the seed; later samples
// measure the same units again.
#pragma once

#include "superstep/physics/chemistry/molecule.h"
#include "superstep/physics/generator.h"

namespace superstep::data {

// Tg of an infinitely long chain, K: the additive method with its corrections. Side-chain CH2 lower Tg by
// less than a main-chain CH2 carries, until beyond nine the side chains order; a ring joined in meta has a
// smaller contribution than in para.
double infinite_glass_transition(const Molecule& repeat_unit);

GeneratorEntry polymer_gcn_generator();
GeneratorEntry polymer_mpnn_generator();

}  // namespace superstep::data
