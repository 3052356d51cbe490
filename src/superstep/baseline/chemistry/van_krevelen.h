// Glass transition temperatures by group contributions (D. W. van Krevelen, Properties of Polymers, ch. 6):
// Tg = sum n_g Y_g / M, once with the tabulated Y_g and once with Y_g fitted to the data.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/baseline/baseline.h"
#include "superstep/physics/chemistry/polymer_groups.h"

namespace superstep::baseline {

struct MeasuredPolymer {
  std::string smiles;
  double kelvin = 0;
  data::GroupCounts groups;
  double molar_mass = 0;
};

// A table (.csv, .tsv) with columns smiles and Tg_K, or an HDF5 file with data sets of these names. Throws
// Error that names the file and the line or row of a repeat unit that cannot be read.
std::vector<MeasuredPolymer> read_polymers(const std::filesystem::path& path);

// Contributions that fit Tg best, K kg/mol, by least squares with a small ridge.
std::map<std::string, double> fit_contributions(const std::vector<MeasuredPolymer>& polymers);
// A group without a contribution counts nothing.
double predict_kelvin(const MeasuredPolymer& polymer, const std::map<std::string, double>& contributions);

Entry polymer_gcn_baseline();

}  // namespace superstep::baseline
