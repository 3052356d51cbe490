// A trained run as a force field: energy, forces and virial of any configuration of its elements.
//
//   TrainedForces field("run", configuration.elements);
//   const data::Labels now = field.evaluate(configuration);    // now.energy, now.forces, now.virial
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "superstep/file/atoms/configuration.h"
#include "superstep/run/serve/infer.h"
#include "superstep/target/target.h"
#include "superstep/workload/atom_model.h"

namespace superstep::run {

class TrainedForces {
 public:
  // The model of a run's folder, compiled for configurations of these atoms (atomic numbers). Throws Error:
  // what load_weights throws; unsupported where the run's workload gives no forces; invalid_argument naming
  // an element that the model does not know.
  TrainedForces(const std::filesystem::path& run, const std::vector<int>& elements, int threads = 1);
  TrainedForces(const Weights& weights, const std::vector<int>& elements, int threads = 1);

  // Energy (eV), forces (eV/A) in the order of the atoms, and -dE/d(strain) (eV) where the model gives it.
  // The atoms are those of the constructor, in any order; the box may be another each time. Throws Error
  // (bad_file) naming the atom where two are at one place, or one has more neighbours than the model's room.
  data::Labels evaluate(const data::Configuration& atoms);

  std::vector<int> elements() const { return atoms_->elements(); }  // that the model knows
  double cutoff() const { return atoms_->cutoff(); }                // A
  bool takes_box() const { return atoms_->takes_box(); }
  bool gives_virial() const { return atoms_->gives_virial(); }

 private:
  std::unique_ptr<workload::AtomModel> atoms_;
  std::unique_ptr<target::Executable> executable_;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace superstep::run
