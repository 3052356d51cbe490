// Steps that are better done together with one before them.
#pragma once

#include <optional>
#include <span>

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// What takes the place of an earlier step.
struct JoinedStep {
  std::size_t place;
  DraftStep step;
};

// What does both, one of `steps` and `step`, which follows them:
//   - planar convolutions of the same image, and gradients of such by their weights, become one pass over it,
//     also where other steps stand between them that neither make nor spoil what the later one reads or
//     writes;
//   - what is computed element by element of the last step, a planar convolution's, large results follows it
//   band by band, so
//     that they are not read from memory again.
// Nothing where that cannot be, or gains nothing.
std::optional<JoinedStep> joined_step(std::span<const DraftStep> steps, const DraftStep& step);

}  // namespace superstep::target::cpu
