// Polymers as they are read, and as a pack of a batch; shared by the files of this folder.
#pragma once

#include <cmath>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "superstep/baseline/chemistry/van_krevelen.h"
#include "superstep/physics/chemistry/molecule.h"
#include "superstep/workload/chemistry/polymer/polymer.h"

namespace superstep::workload {

// A repeat unit with what was measured of it: the geometric mean of all measurements. NaN where there are
// none.
struct Polymer {
  std::string smiles, canonical;
  std::string place;  // where it was read first: "polymers.csv, line 7"
  std::int64_t row = 0;
  data::Molecule molecule;
  double kelvin = NAN, exact = NAN;
};

struct Polymers {
  std::vector<Polymer> polymers;
  std::int64_t rows = 0, left_out = 0;  // of the file; those whose temperature is none
  bool labelled = false;
};

// From the file of the settings, or generated. Labelled polymers are merged, each once, and those that were
// not measured above 0 K are left out; others are as they come. Throws Error that names the place of a bad
// one, or a file without temperatures where they are wanted.
Polymers read_polymers(const PolymerData& data, const TaskSettings& settings);

// One pack of every input (x, edge_index, edge_attr where there are bonds, batch): row `row` of the tensors.
class PackWriter {
 public:
  PackWriter(std::span<Tensor> tensors, std::size_t row, bool with_bonds);
  void add(const data::Molecule& molecule);

 private:
  void add_edge(const data::Molecule& molecule, int number, bool back);

  std::span<float> x_;
  std::span<std::int64_t> edges_;
  std::span<float> bonds_;
  std::span<std::int64_t> batch_;
  std::int64_t atoms_ = 0, placed_edges_ = 0, polymers_ = 0;
};

// What a network can have learnt about: the surroundings of atoms (each with its neighbours and bonds), and
// sizes.
class Domain {
 public:
  explicit Domain(std::span<const Polymer> known);
  // In words, what of a polymer lies outside; empty where nothing does.
  std::string outside(const Polymer& polymer) const;

 private:
  std::set<std::string> surroundings_;
  int most_atoms_ = 0;
};

}  // namespace superstep::workload
