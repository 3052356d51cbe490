// What tells one version of the planners from another.
#pragma once

namespace superstep::machine::ipu {

extern const char* const planner_digest;  // of their sources, in 16 hexadecimal digits

}  // namespace superstep::machine::ipu
