// Columns of air with the drag of gravity waves in them, for emulators of that scheme of weather models.
#pragma once

#include "superstep/physics/flow/gravity_waves.h"
#include "superstep/physics/generator.h"

namespace superstep::data {

inline constexpr double seconds_a_day = 86400;  // drag is said in m/s a day

// Fields u, v, temperature and source (flux in mPa, width in m/s) as the scheme is given them: the drag
// beside them is that of these numbers, rounded to f32.
GeneratorEntry gravity_wave_generator();  // "gravity-wave-drag"

}  // namespace superstep::data
