// Glass transition temperatures by group contributions (D. W. van Krevelen, Properties of Polymers, ch. 6):
// Tg = sum n_g Y_g / M, once with the tabulated Y_g and once with Y_g fitted to the data.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "superstep/baseline/baseline.h"
#include "superstep/baseline/chemistry/molecule_rows.h"
#include "superstep/physics/chemistry/polymer_groups.h"

namespace superstep::baseline {

// Where files of polymers have their temperatures.
inline constexpr LabelColumns glass_transition_columns = {"Tg_K", "Tg_exact_K"};

struct MeasuredPolymer {
  std::string smiles;
  double kelvin = 0;
  data::GroupCounts groups;
  double molar_mass = 0;
};

// Its groups. Throws Error (invalid_argument) when it is no repeat unit.
MeasuredPolymer measured_polymer(const std::string& smiles, double kelvin);

// Those of a file. Throws Error that names the file and the line or row of a repeat unit that cannot be read.
std::vector<MeasuredPolymer> read_polymers(const std::filesystem::path& path);

// Contributions that fit Tg best, K kg/mol, by least squares with a small ridge.
std::map<std::string, double> fit_contributions(const std::vector<MeasuredPolymer>& polymers);
// A group without a contribution counts nothing.
double predict_kelvin(const MeasuredPolymer& polymer, const std::map<std::string, double>& contributions);

// What the elements alone say, by ridge regression on their counts in 1 kg: the floor.
std::vector<double> predict_by_elements(const std::vector<MeasuredPolymer>& training,
                                        const std::vector<MeasuredPolymer>& others);

// The same under the names of both networks that are held against it.
Entry polymer_gcn_baseline();
Entry polymer_mpnn_baseline();

}  // namespace superstep::baseline
