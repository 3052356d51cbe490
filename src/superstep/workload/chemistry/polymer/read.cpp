// Tables of polymers, and generated ones, as molecules.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "superstep/baseline/in_file.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/workload/chemistry/polymer/polymer_data.h"
#include "superstep/workload/generated.h"

namespace superstep::workload {
namespace {

constexpr std::int64_t default_polymers = 7558;  // as many as ANL-23/15 has temperatures of
std::vector<baseline::MoleculeRow> generated_polymers(const PolymerData& data, const TaskSettings& settings) {
  const Fields fields = generated_fields(*make_generator(data.generator), settings, default_polymers);
  const Tensor &letters = fields.at("smiles"), &kelvin = fields.at("Tg_K"), &exact = fields.at("Tg_exact_K");
  const std::int64_t width = letters.shape()[1];
  std::vector<baseline::MoleculeRow> rows;
  for (std::int64_t i = 0; i < letters.shape()[0]; ++i) {
    std::string smiles(reinterpret_cast<const char*>(letters.bytes()) + i * width,
                       static_cast<std::size_t>(width));
    smiles.resize(std::min(smiles.size(), smiles.find('\0')));
    rows.push_back({std::move(smiles), kelvin.at(i), exact.at(i), fmt::format("generated polymer {}", i)});
  }
  return rows;
}

Polymer read_polymer(const baseline::MoleculeRow& row, std::int64_t number) {
  try {
    Polymer polymer{.smiles = row.smiles,
                    .canonical = {},
                    .place = row.place,
                    .row = number,
                    .molecule = data::parse_smiles(row.smiles),
                    .kelvin = row.label,
                    .exact = row.exact};
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
    Polymer polymer = read_polymer(rows[i], static_cast<std::int64_t>(i));
    const auto [found, added] = place.emplace(polymer.canonical, result.polymers.size());
    if (added) result.polymers.push_back(std::move(polymer)), measured.emplace_back();
    measured[found->second].kelvin.push_back(rows[i].label);
    measured[found->second].exact.push_back(rows[i].exact);
  }
  for (std::size_t i = 0; i < result.polymers.size(); ++i) {
    result.polymers[i].kelvin = geometric_mean(measured[i].kelvin);
    result.polymers[i].exact = geometric_mean(measured[i].exact);
  }
  return result;
}

Polymers as_they_come(const std::vector<baseline::MoleculeRow>& rows) {
  Polymers result{.polymers = {}, .rows = static_cast<std::int64_t>(rows.size())};
  for (std::size_t i = 0; i < rows.size(); ++i)
    result.polymers.push_back(read_polymer(rows[i], static_cast<std::int64_t>(i)));
  return result;
}

bool has_labels(const std::vector<baseline::MoleculeRow>& rows) {
  return std::ranges::any_of(rows, [](const baseline::MoleculeRow& row) { return !std::isnan(row.label); });
}

}  // namespace

Polymers read_polymers(const PolymerData& data, const TaskSettings& settings) {
  std::vector<baseline::MoleculeRow> rows =
      settings.data.empty() ? generated_polymers(data, settings)
                            : baseline::read_molecule_rows(settings.data, baseline::glass_transition_columns,
                                                           settings.labels_required);
  if (settings.samples > 0 && static_cast<std::int64_t>(rows.size()) > settings.samples)
    rows.resize(static_cast<std::size_t>(settings.samples));
  if (has_labels(rows)) return merged(rows);
  if (rows.empty() || settings.labels_required)
    throw Error(ErrorCode::bad_file, rows.empty() ? "has no polymers" : "has no polymer with a temperature",
                settings.data.string());
  return as_they_come(rows);
}

}  // namespace superstep::workload
