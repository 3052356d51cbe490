// Models of the zoo that are force fields: how atoms become their inputs, and their outputs energy, forces
// and virial. What drives atoms, and what fits curves through energies, knows them by this alone.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "superstep/base/options.h"
#include "superstep/base/tensor.h"
#include "superstep/file/atoms/configuration.h"

namespace superstep::workload {

class AtomModel {
 public:
  virtual ~AtomModel() = default;
  // Options, name=value, that the model is built with to have room for the atoms that this was made for, on
  // top of those that it was trained with: they change no parameter.
  virtual std::vector<std::string> room() const = 0;
  virtual std::vector<int> elements() const = 0;  // that the model knows, atomic numbers
  // Beyond which atoms do not feel each other, A.
  virtual double cutoff() const = 0;
  // Does a periodic box make sense to it?
  virtual bool takes_box() const { return true; }
  virtual bool gives_virial() const { return true; }
  // One sample of the model's inputs from atoms of those elements, in any order. Throws Error that names the
  // atom: a neighbour too many, two atoms at one place, coordinates that are not finite; unsupported: a box,
  // to a model of open space.
  virtual void fill(const data::Configuration& atoms, std::span<Tensor> inputs) = 0;
  // What the model said of the atoms last filled in, in their order; no virial where it gives none.
  virtual data::Labels read(std::span<const Tensor> outputs) const = 0;
};

// For configurations of these atoms (atomic numbers) and a model of these options. Throws Error:
// invalid_argument that names the atom where the model does not know its element; unsupported where the
// workload gives no forces.
std::unique_ptr<AtomModel> open_atoms(std::string_view workload, const std::vector<int>& elements,
                                      const Options& model);
// The workloads that do, by name: "deepmd, schnet".
std::string atom_workloads();

}  // namespace superstep::workload
