// The sums of a workload of the zoo, as tables' facts have them of other networks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "superstep/lab/validate/tables/facts.h"

namespace superstep::lab {

// Of a workload or a form of one, with sequences of this length (0: the workload's own); nothing where there
// is no such workload.
std::optional<ModelFacts> zoo_facts(const std::string& name, std::int64_t length);

}  // namespace superstep::lab
