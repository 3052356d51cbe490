// Ports and values as the public interface has them.
#pragma once

#include <span>
#include <vector>

#include "superstep/superstep.h"
#include "superstep/target/target.h"

namespace superstep::api {

std::vector<Port> ports_of(std::span<const target::Executable::Port> ports);
std::vector<std::string> names_of(std::span<const Port> ports);

// The values in the order of the ports. Throws Error (invalid_argument) naming a port without a value, and a
// value without a port.
std::vector<Tensor> in_order(const std::vector<Port>& ports, const NamedValues& values);

// Throws Error (invalid_argument) with the nearest name.
const Port& find_port(std::span<const Port> ports, std::string_view name, const char* kind);
// Throws Error (invalid_argument) when the tensor is not of the port's type and shape.
void require_fits(const Port& port, const Tensor& value);

PlanFacts facts_of(const target::PlanSummary& summary);

}  // namespace superstep::api
