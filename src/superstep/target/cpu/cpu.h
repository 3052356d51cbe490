#pragma once

#include "superstep/target/target.h"

namespace superstep::target::cpu {

const Target& cpu_target();

}  // namespace superstep::target::cpu
