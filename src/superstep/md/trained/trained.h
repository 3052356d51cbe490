// Trained models as force fields: the folder of a training run becomes something that moves atoms.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/md/forces/force_field.h"

namespace superstep::md {

// `start` says which atoms there will be. Throws Error: what run::load_weights throws; unsupported where the
// run's workload gives no forces (workload/atom_model.h has those that do); invalid_argument naming the atom
// that the model does not know.
std::unique_ptr<ForceField> open_trained(const std::filesystem::path& run, const data::Configuration& start,
                                         int threads);

}  // namespace superstep::md
