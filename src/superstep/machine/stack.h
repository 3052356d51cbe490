// The software that a machine is driven by, and what it adds to the machine's own time: launches of operators
// one by one, kernels that reach less than the best, calls from Python, loaders.
//
// Machine files have them under [stacks.NAME]; a number that a stack gives under a name that the style has
// too (host_call, host_sample, host_feed_rate) takes the machine's place while the stack drives it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/machine/constant.h"
#include "superstep/machine/style.h"

namespace superstep::machine {

struct Stack {
  std::string name;                 // "pytorch-eager"
  std::vector<Constant> constants;  // all of stack_constants() in its order, then those of the style's names

  // Throws Error (internal) when a stack has no such constant.
  double value(std::string_view constant_name) const;
};

// What a stack may say; every one has a default that stands for "adds nothing".
std::span<const ConstantSpec> stack_constants();

// The names that stacks may have, in the order that lists show them.
std::span<const std::string_view> stack_names();

}  // namespace superstep::machine
