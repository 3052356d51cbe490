// The loops of pair_panel.cpp, one set an instruction set. Internal to it.
#pragma once

#include "superstep/target/cpu/kernels/product/pair_panel.h"

namespace superstep::kernels {

using PairPanelFunction = void(const PairPanel& panel, const void* source, void* result);

}  // namespace superstep::kernels
