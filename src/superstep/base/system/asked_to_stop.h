// For work that goes on after the user asked to stop, and decides itself what of it is finished first.
#pragma once

namespace superstep {

// Has the user asked to stop? Also while an Uninterrupted (base/system/interrupt.h) keeps it from all others.
bool asked_to_stop();

}  // namespace superstep
