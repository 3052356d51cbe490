// Targets that compute as a machine does: "numerics:gc200", "numerics:a100-tf32;encoder.*=f16".
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "superstep/target/numerics/emulation.h"
#include "superstep/target/numerics/spec.h"
#include "superstep/target/target.h"

namespace superstep::target::numerics {

// The target of such a name, made when it is first asked for; null for other names. Throws Error
// (invalid_argument) naming a machine, a mode or a setting that there is not.
const Target* find_numerics_target(std::string_view name);

// What --numerics and --numerics-of say as the name of a target. Throws what find_numerics_target() throws.
std::string numerics_target_name(std::string_view arithmetic, const std::vector<std::string>& nodes);

std::unique_ptr<Emulation> emulate(const GraphAtBatch& model, const CompileOptions& options,
                                   const Spec& spec);

}  // namespace superstep::target::numerics
