// Any recurrent layer as a loop over its steps, each written from the graph of a step.
#pragma once

#include <string_view>
#include <vector>

#include "superstep/target/pjrt/stablehlo/lowering.h"

namespace superstep::target::stablehlo {

// Of RNN, GRU and LSTM: Y, Y_h and of an LSTM Y_c.
std::vector<Value> recurrent_in_a_loop(const Site& site, std::string_view cell);
// Of superstep.RecurrentGradient.
std::vector<Value> recurrent_gradient_in_a_loop(const Site& site);

}  // namespace superstep::target::stablehlo
