// What lies outside of what a network of molecules can have learnt.
#pragma once

#include <set>
#include <string>

#include "superstep/physics/chemistry/molecule.h"

namespace superstep::workload {

// The surroundings of atoms (each with its neighbours and bonds), and sizes.
class Domain {
 public:
  void learn(const data::Molecule& molecule);
  // In words, what of a molecule lies outside; empty where nothing does.
  std::string outside(const data::Molecule& molecule) const;

 private:
  std::set<std::string> surroundings_;
  int most_atoms_ = 0;
};

}  // namespace superstep::workload
