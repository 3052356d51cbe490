// Polymers as they are read; shared by the files of this folder.
#pragma once

#include <string>
#include <vector>

#include "superstep/baseline/chemistry/van_krevelen.h"
#include "superstep/workload/chemistry/molecule_samples.h"
#include "superstep/workload/chemistry/polymer/polymer.h"

namespace superstep::workload {

// A repeat unit with what was measured of it in K: the geometric mean of all measurements.
struct Polymer : MoleculeSample {
  std::string canonical;
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

}  // namespace superstep::workload
