// Steps that are better done together with the step before them.
#pragma once

#include <optional>

#include "superstep/target/cpu/lower/lowering.h"

namespace superstep::target::cpu {

// What does both, `last` and then `step`:
//   - planar convolutions of the same image become one pass over it;
//   - what is computed element by element of a planar convolution's large results follows it band by band, so
//     that they are not read from memory again.
// Nothing where that cannot be, or gains nothing.
std::optional<DraftStep> joined_step(const DraftStep& last, const DraftStep& step);

}  // namespace superstep::target::cpu
