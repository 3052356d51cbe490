// Element types of device tensors: those of base/element_type.h that a tile can hold.
#pragma once

#include <string>

#include "superstep/base/element_type.h"

#pragma GCC visibility push(default)  // installed: what is declared here is exported

namespace superstep::bsp {

using Type = ElementType;

// True for bool, signed and unsigned integers of 8 to 64 bits, half and float. A tile has neither double
// precision nor bfloat16.
bool is_device_type(Type type);

// The name a device program uses: "float", "half", "int", "unsigned_int", "bool", ...
std::string device_name(Type type);

}  // namespace superstep::bsp

#pragma GCC visibility pop
