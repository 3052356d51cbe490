// What cells may name: workloads, machines, metrics, forms of numbers; and the measure of each metric.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/lab/bench/configurations.h"

namespace superstep::study {

// Of the zoo, a form of one, a primitive, a set of them, or an all-reduce ("allreduce-64.5M").
bool is_workload(const std::string& name);
std::vector<std::string> names_of_workloads();

// Those with a file, and "cpu": this computer, or one like it.
std::vector<std::string> names_of_machines();

// Empty: the name has no such value; else what may stand in the column. Any text in columns without a list.
std::vector<std::string> known_values(std::string_view column);

// The published shape of this name, or the product (lab/bench/configurations.h); nothing where it is neither.
std::optional<lab::Primitive> primitive_of(const std::string& name);

// What comes of a training and not of its speed.
bool is_quality(const std::string& metric);

}  // namespace superstep::study
