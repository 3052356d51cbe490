// Sums over the positions of images, together with the element-wise operators that make what is summed.
#pragma once

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// Whether the group's result is read by one such sum alone, so that the two may run as one step.
bool feeds_sums(const Lowering& lowering, const FusionGroup& group);

// The node (superstep.ChannelSums; ReduceSum or ReduceMean over positions) and the group in front of it: one
// pass over what the group reads, whose result is never written. The sums are made in parts that threads
// share, always the same ones, and added up by a second step.
Lowered lower_sums_of_group(Lowering& lowering, const FusionGroup& group, NodeId id);

}  // namespace superstep::target::cpu
