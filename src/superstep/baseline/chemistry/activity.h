// Whether molecules bind, by what is used without graph networks: ridge regression on element counts, and
// boosted trees on circular fingerprints.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "superstep/baseline/baseline.h"
#include "superstep/baseline/chemistry/molecule_rows.h"
#include "superstep/physics/chemistry/molecule.h"

namespace superstep::baseline {

// Where files of molecules say whether they are active, 0 or 1, and how likely a generated one was to be.
inline constexpr LabelColumns activity_columns = {"active", "probability"};

struct AssayedMolecule {
  data::Molecule molecule;
  std::string scaffold;  // physics/chemistry/scaffold.h: molecules of one series stay together
  bool active = false;
};

// Is this series of molecules in the fold that is held out, 0 to 4? The same answer in every run.
inline constexpr int activity_folds = 5;
bool is_in_fold(const std::string& scaffold, int fold);

// Throws Error (invalid_argument) where a label is neither 0 nor 1.
bool read_label(const MoleculeRow& row);

// Scores of `others` after fitting to `known`.
std::vector<double> score_by_elements(const std::vector<const AssayedMolecule*>& known,
                                      const std::vector<const AssayedMolecule*>& others);
std::vector<double> score_by_fingerprints(const std::vector<const AssayedMolecule*>& known,
                                          const std::vector<const AssayedMolecule*>& others, int threads);

Entry gin_baseline();

}  // namespace superstep::baseline
