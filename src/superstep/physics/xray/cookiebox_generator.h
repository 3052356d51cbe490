// Pairs of electron histogram and density for CookieNetAE.
#pragma once

#include "superstep/physics/generator.h"

namespace superstep::data {

GeneratorEntry cookiebox_generator();

}  // namespace superstep::data
