// Tables of polymers, and generated ones, as molecules.
#include <algorithm>
#include <map>

#include "superstep/baseline/in_file.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/workload/chemistry/polymer/polymer_data.h"

namespace superstep::workload {
namespace {

Polymer read_polymer(const baseline::MoleculeRow& row, std::size_t number) {
  try {
    Polymer polymer;
    polymer.smiles = row.smiles, polymer.place = row.place, polymer.row = number;
    polymer.molecule = data::parse_smiles(row.smiles);
    polymer.label = row.label, polymer.exact = row.exact;
    polymer.canonical = data::canonical_smiles(polymer.molecule);
    return polymer;
  } catch (const Error& error) {
    throw baseline::in_file(error, row.place);
  }
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

// Polymers of labelled rows, each once. What is not above 0 K was not measured, and is left out.
Polymers merged(const std::vector<baseline::MoleculeRow>& rows) {
  struct Measurements {
    std::vector<double> kelvin, exact;
  };
  Polymers result{.polymers = {}, .rows = static_cast<std::int64_t>(rows.size()), .labelled = true};
  std::map<std::string, std::size_t> place;
  std::vector<Measurements> measured;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!(rows[i].label > 0)) {
      ++result.left_out;
      continue;
    }
    Polymer polymer = read_polymer(rows[i], i);
    const auto [found, added] = place.emplace(polymer.canonical, result.polymers.size());
    if (added) result.polymers.push_back(std::move(polymer)), measured.emplace_back();
    measured[found->second].kelvin.push_back(rows[i].label);
    measured[found->second].exact.push_back(rows[i].exact);
  }
  for (std::size_t i = 0; i < result.polymers.size(); ++i) {
    result.polymers[i].label = geometric_mean(measured[i].kelvin);
    result.polymers[i].exact = geometric_mean(measured[i].exact);
  }
  return result;
}

Polymers as_they_come(const std::vector<baseline::MoleculeRow>& rows) {
  Polymers result{.polymers = {}, .rows = static_cast<std::int64_t>(rows.size())};
  for (std::size_t i = 0; i < rows.size(); ++i) result.polymers.push_back(read_polymer(rows[i], i));
  return result;
}

}  // namespace

Polymers read_polymers(const PolymerData& data, const TaskSettings& settings) {
  const std::vector<baseline::MoleculeRow> rows =
      read_rows({.generator = data.generator,
                 .columns = baseline::glass_transition_columns,
                 .generated = 7558,  // as many as ANL-23/15 has temperatures of
                 .thing = "polymer",
                 .label = "temperature"},
                settings);
  return any_labelled(rows) ? merged(rows) : as_they_come(rows);
}

}  // namespace superstep::workload
