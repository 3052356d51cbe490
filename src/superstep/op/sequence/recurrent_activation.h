// The activation functions that recurrent operators name in their attributes.
#pragma once

#include <functional>

#include "superstep/op/core/definition.h"

namespace superstep::op {

using Activation = std::function<Var(Var)>;

// `count` functions a direction from the attributes activations, activation_alpha and activation_beta, or
// `defaults` repeated; throws Error (bad_graph) on an unknown name.
std::vector<Activation> recurrent_activations(const Attributes& attributes, std::vector<std::string> defaults,
                                              int directions);

}  // namespace superstep::op
