#include "superstep/baseline/chemistry/van_krevelen.h"

#include <fmt/format.h>

#include <algorithm>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/chemistry/fingerprint.h"
#include "superstep/baseline/in_file.h"
#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/smiles.h"

namespace superstep::baseline {
namespace {

constexpr int held_out_one_in = 5;
constexpr double grams_per_kilogram = 1000;

std::map<std::string, double> tabulated_contributions() {
  std::map<std::string, double> table;
  for (const data::GroupContribution& each : data::group_contributions())
    table[each.smiles == data::side_methylene ? data::side_methylene
                                              : data::canonical_smiles(data::parse_smiles(each.smiles))] =
        each.yg;
  return table;
}

// The floor: what the elements alone say.
std::vector<double> element_fractions(const MeasuredPolymer& polymer) {
  const data::Molecule molecule = data::parse_smiles(polymer.smiles);
  std::map<int, double> counts = {{1, 0}, {6, 0}, {7, 0}, {8, 0}, {9, 0}, {14, 0}, {16, 0}, {17, 0}};
  for (const data::Atom& atom : molecule.atoms()) {
    counts[1] += atom.hydrogens;
    if (atom.element > 1 && counts.contains(atom.element)) counts[atom.element] += 1;
  }
  std::vector<double> fractions;
  for (const auto& [element, count] : counts)
    fractions.push_back(count * grams_per_kilogram / polymer.molar_mass);
  return fractions;
}

Eigen::MatrixXd element_matrix(const std::vector<MeasuredPolymer>& polymers) {
  Eigen::MatrixXd x;
  for (std::size_t row = 0; row < polymers.size(); ++row) {
    const std::vector<double> fractions = element_fractions(polymers[row]);
    if (row == 0)
      x.resize(static_cast<Eigen::Index>(polymers.size()), static_cast<Eigen::Index>(fractions.size()));
    x.row(static_cast<Eigen::Index>(row)) =
        Eigen::Map<const Eigen::RowVectorXd>(fractions.data(), static_cast<Eigen::Index>(fractions.size()));
  }
  return x;
}

Eigen::VectorXd kelvins(const std::vector<MeasuredPolymer>& polymers) {
  Eigen::VectorXd y(static_cast<Eigen::Index>(polymers.size()));
  for (std::size_t i = 0; i < polymers.size(); ++i) y[static_cast<Eigen::Index>(i)] = polymers[i].kelvin;
  return y;
}

std::vector<double> as_vector(const Eigen::VectorXd& values) { return {values.begin(), values.end()}; }

std::vector<double> predictions(const std::vector<MeasuredPolymer>& polymers,
                                const std::map<std::string, double>& contributions) {
  std::vector<double> kelvin;
  for (const MeasuredPolymer& polymer : polymers) kelvin.push_back(predict_kelvin(polymer, contributions));
  return kelvin;
}

// Environments of atoms in 1 kg of the polymer.
TreeFeatures fingerprint_matrix(const std::vector<MeasuredPolymer>& polymers) {
  constexpr int radius = 2, bins = 1024;
  TreeFeatures x(static_cast<Eigen::Index>(polymers.size()), bins);
  for (std::size_t row = 0; row < polymers.size(); ++row) {
    const auto counts = morgan_fingerprint(data::parse_smiles(polymers[row].smiles), radius, bins);
    x.row(static_cast<Eigen::Index>(row)) = Eigen::Map<const Eigen::RowVectorXf>(counts.data(), bins) *
                                            static_cast<float>(grams_per_kilogram / polymers[row].molar_mass);
  }
  return x;
}

// What fingerprints tell that know nothing of group contributions.
struct FingerprintPredictions {
  std::vector<double> ridge, trees;
};
FingerprintPredictions predict_by_fingerprints(const std::vector<MeasuredPolymer>& training,
                                               const std::vector<MeasuredPolymer>& held_out, int threads) {
  constexpr double strength = 1e-3;
  const TreeFeatures known = fingerprint_matrix(training), others = fingerprint_matrix(held_out);
  const LinearModel linear = fit_ridge(known.cast<double>(), kelvins(training), strength);
  return {as_vector(linear.predict_all(others.cast<double>())),
          fit_trees(known, as_vector(kelvins(training)), others, {.threads = threads})};
}

void write_predictions(const std::filesystem::path& path, const std::vector<MeasuredPolymer>& polymers,
                       const std::vector<double>& tabulated, const std::vector<double>& fitted) {
  data::CsvWriter file(path, {"smiles", "Tg_K", "tabulated_K", "fitted_K"});
  for (std::size_t i = 0; i < polymers.size(); ++i) {
    file.cell(polymers[i].smiles).cell(polymers[i].kelvin).cell(tabulated[i]).cell(fitted[i]);
    file.end_row();
  }
  file.close();
}

std::string table_of(const std::vector<std::pair<std::string, RegressionScore>>& rows) {
  TextTable table({"method", "MAE K", "RMSE K", "R2"});
  for (const auto& [name, each] : rows)
    table.add_row({name, fmt::format("{:.2f}", each.mae), fmt::format("{:.2f}", each.rmse),
                   fmt::format("{:.3f}", each.r2)});
  return table.to_string();
}

Report run(const Request& request, const Options&) {
  std::vector<MeasuredPolymer> training, held_out;
  for (MeasuredPolymer& polymer : read_polymers(request.input))
    (is_held_out(data::canonical_smiles(data::parse_smiles(polymer.smiles)), held_out_one_in) ? held_out
                                                                                              : training)
        .push_back(std::move(polymer));
  if (training.empty() || held_out.empty())
    throw Error(ErrorCode::bad_file, "too few polymers to fit and to hold some out", request.input.string());
  const Stopwatch watch;
  const std::map<std::string, double> contributions = fit_contributions(training);
  const double fit_time = watch.seconds();
  const std::vector<double> measured = as_vector(kelvins(held_out));
  const std::vector<double> tabulated = predictions(held_out, tabulated_contributions());
  const std::vector<double> fitted = predictions(held_out, contributions);
  const std::vector<double> floor = predict_by_elements(training, held_out);
  const FingerprintPredictions prints = predict_by_fingerprints(training, held_out, request.pool->threads());
  if (!request.output.empty()) write_predictions(request.output, held_out, tabulated, fitted);
  Report report;
  append_metrics(report.metrics, "", score(measured, fitted), "K");
  append_metrics(report.metrics, "tabulated_", score(measured, tabulated), "K");
  append_metrics(report.metrics, "floor_", score(measured, floor), "K");
  append_metrics(report.metrics, "fingerprint_", score(measured, prints.ridge), "K");
  append_metrics(report.metrics, "trees_", score(measured, prints.trees), "K");
  report.metrics.push_back({"fit_time", fit_time, "s"});
  report.text = table_of({{"ridge on element counts", score(measured, floor)},
                          {"ridge on fingerprints", score(measured, prints.ridge)},
                          {"boosted trees on fingerprints", score(measured, prints.trees)},
                          {"tabulated contributions", score(measured, tabulated)},
                          {"fitted contributions", score(measured, fitted)}});
  return report;
}

}  // namespace

MeasuredPolymer measured_polymer(const std::string& smiles, double kelvin) {
  const data::Molecule molecule = data::parse_smiles(smiles);
  return {smiles, kelvin, data::count_groups(molecule), data::molecular_weight(molecule)};
}

std::vector<MeasuredPolymer> read_polymers(const std::filesystem::path& path) {
  std::vector<MeasuredPolymer> polymers;
  for (const MoleculeRow& row : read_molecule_rows(path, glass_transition_columns)) try {
      polymers.push_back(measured_polymer(row.smiles, row.label));
    } catch (const Error& error) {
      throw in_file(error, row.place);
    }
  return polymers;
}

std::vector<double> predict_by_elements(const std::vector<MeasuredPolymer>& training,
                                        const std::vector<MeasuredPolymer>& others) {
  constexpr double strength = 1e-6;
  return as_vector(
      fit_ridge(element_matrix(training), kelvins(training), strength).predict_all(element_matrix(others)));
}

std::map<std::string, double> fit_contributions(const std::vector<MeasuredPolymer>& polymers) {
  std::map<std::string, Eigen::Index> column;
  for (const MeasuredPolymer& polymer : polymers)
    for (const auto& [group, count] : polymer.groups) column.emplace(group, 0);
  Eigen::Index columns = 0;
  for (auto& [group, place] : column) place = columns++;
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(polymers.size()), columns);
  for (std::size_t row = 0; row < polymers.size(); ++row)
    for (const auto& [group, count] : polymers[row].groups)
      x(static_cast<Eigen::Index>(row), column[group]) =
          count * grams_per_kilogram / polymers[row].molar_mass;
  Eigen::MatrixXd gram = x.transpose() * x;
  gram.diagonal().array() += 1e-6 * (1 + gram.diagonal().mean());
  const Eigen::VectorXd fitted = gram.ldlt().solve(x.transpose() * kelvins(polymers));
  std::map<std::string, double> contributions;
  for (const auto& [group, place] : column) contributions[group] = fitted[place];
  return contributions;
}

double predict_kelvin(const MeasuredPolymer& polymer, const std::map<std::string, double>& contributions) {
  double sum = 0;
  for (const auto& [group, count] : polymer.groups)
    if (const auto found = contributions.find(group); found != contributions.end())
      sum += count * found->second;
  return sum * grams_per_kilogram / polymer.molar_mass;
}

Entry polymer_gcn_baseline() {
  return {"polymer-gcn",
          "group contributions to Tg, tabulated and fitted; fingerprints with ridge and boosted trees",
          {},
          run};
}

Entry polymer_mpnn_baseline() {
  Entry entry = polymer_gcn_baseline();
  entry.name = "polymer-mpnn";
  return entry;
}

}  // namespace superstep::baseline
