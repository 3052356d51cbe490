// The mean of a value over several runs that work on parts of one batch: what statistics of a whole batch are
// made of when no run sees more than its part.
//
// superstep.PartsMean(x) -> y: y is the mean of x over this part and its neighbours (target::Exchange). Each
// part has a loss of its own, and what counts is the mean of them all, so that its derivative is itself: the
// mean over parts of the cotangents. Evaluated alone, as by the reference, there is one part and y = x.
#pragma once

#include "superstep/op/core/definition.h"

namespace superstep::op {

Var parts_mean(Var x);
Var parts_mean_in_f32(Var x);  // what targets exchange; of the element type of x again

std::span<const Definition> parts_mean_operators();

}  // namespace superstep::op
