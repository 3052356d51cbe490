// How the tensors of a program lie on the devices that share it. The program is written as for one; the
// plug-in's compiler divides it, and adds the sums over devices and the exchanges that it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "superstep/base/shape.h"

namespace superstep::target::stablehlo {

// A tensor is whole on every device, or cut into equal pieces along an axis, one a device in their order.
constexpr int whole = -1;

struct Sharding {
  int devices = 1;
  std::vector<int> inputs, states, outputs;  // axes, in the graph's order; empty where there is one device
};

// The attribute that says it, "{devices=[4,1]<=[4]}" or "{replicated}".
std::string sharding_text(int axis, int rank, int devices);

// The axis along which a tensor of rows is cut: the first, where it has an equal share for each device.
int axis_of_rows(const Shape& shape, std::int64_t rows, int devices);
// Of a parameter: its longest axis that divides, where a piece is worth it.
int axis_of_parameter(const Shape& shape, int devices);

Shape piece_shape(const Shape& shape, int axis, int devices);

}  // namespace superstep::target::stablehlo
