// Trained models as force fields: the folder of a training run becomes something that moves atoms.
#pragma once

#include <filesystem>
#include <memory>

#include "superstep/md/forces/force_field.h"
#include "superstep/run/serve/infer.h"

namespace superstep::md {

// A workload whose trained models can move atoms. To add one: a file beside this one with a function `open`,
// and a line in the table (trained.cpp).
struct TrainedPotential {
  const char* workload;  // as typed: "schnet"
  // `start` says which atoms there will be; they may be moved by whole edges of the box. Throws Error
  // (invalid_argument) naming the atom that the model does not know.
  std::unique_ptr<ForceField> (*open)(const run::Weights& weights, data::Configuration& start, int threads);
};

// By the workload that the run's folder names. Throws Error: what run::load_weights throws; unsupported where
// the workload gives no forces.
std::unique_ptr<ForceField> open_trained(const std::filesystem::path& run, data::Configuration& start,
                                         int threads);

// The workloads of the table, by name.
std::string trained_workloads();

std::unique_ptr<ForceField> open_schnet(const run::Weights& weights, data::Configuration& start, int threads);
std::unique_ptr<ForceField> open_deepmd(const run::Weights& weights, data::Configuration& start, int threads);

}  // namespace superstep::md
