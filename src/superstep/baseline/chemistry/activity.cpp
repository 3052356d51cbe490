#include "superstep/baseline/chemistry/activity.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/chemistry/fingerprint.h"
#include "superstep/baseline/in_file.h"
#include "superstep/baseline/ranking.h"
#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/scaffold.h"
#include "superstep/physics/chemistry/smiles.h"

namespace superstep::baseline {
namespace {

using Molecules = std::vector<const AssayedMolecule*>;

// Hydrogen and the elements of drugs.
constexpr std::array<int, 10> elements = {1, 6, 7, 8, 9, 15, 16, 17, 35, 53};

Eigen::MatrixXd element_counts(const Molecules& molecules) {
  Eigen::MatrixXd counts = Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(molecules.size()),
                                                 static_cast<Eigen::Index>(elements.size()));
  for (std::size_t row = 0; row < molecules.size(); ++row)
    for (const data::Atom& atom : molecules[row]->molecule.atoms()) {
      counts(static_cast<Eigen::Index>(row), 0) += atom.hydrogens;
      for (std::size_t k = 1; k < elements.size(); ++k)
        if (atom.element == elements[k])
          counts(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(k)) += 1;
    }
  return counts;
}

TreeFeatures fingerprints(const Molecules& molecules) {
  constexpr int radius = 2, bins = 1024;
  TreeFeatures x(static_cast<Eigen::Index>(molecules.size()), bins);
  for (std::size_t row = 0; row < molecules.size(); ++row) {
    const auto counts = morgan_fingerprint(molecules[row]->molecule, radius, bins);
    x.row(static_cast<Eigen::Index>(row)) = Eigen::Map<const Eigen::RowVectorXf>(counts.data(), bins);
  }
  return x;
}

std::vector<double> labels_of(const Molecules& molecules) {
  std::vector<double> labels;
  for (const AssayedMolecule* each : molecules) labels.push_back(each->active);
  return labels;
}

struct Series {
  std::vector<AssayedMolecule> molecules;
  std::vector<std::string> smiles;
};

Series read_series(const std::filesystem::path& path) {
  Series all;
  for (const MoleculeRow& row : read_molecule_rows(path, activity_columns)) try {
      AssayedMolecule molecule{data::parse_smiles(row.smiles), {}, read_label(row)};
      molecule.scaffold = data::scaffold_smiles(molecule.molecule);
      all.molecules.push_back(std::move(molecule));
      all.smiles.push_back(row.smiles);
    } catch (const Error& error) {
      throw in_file(error, row.place);
    }
  return all;
}

void append(Report& report, TextTable& table, const std::string& method, const std::string& prefix,
            const std::vector<double>& scores, std::span<const bool> labels) {
  const double area = area_under_roc(scores, labels), precision = average_precision(scores, labels);
  report.metrics.push_back({prefix + "roc_auc", area, ""});
  report.metrics.push_back({prefix + "average_precision", precision, ""});
  table.add_row({method, fmt::format("{:.4f}", area), fmt::format("{:.4f}", precision)});
}

Report run(const Request& request, const Options& options) {
  const int fold = static_cast<int>(options.integer("fold", 1, activity_folds)) - 1;
  const Series all = read_series(request.input);
  Molecules known, others;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < all.molecules.size(); ++i) {
    const bool held = is_in_fold(all.molecules[i].scaffold, fold);
    (held ? others : known).push_back(&all.molecules[i]);
    if (held) places.push_back(i);
  }
  if (known.empty() || others.empty())
    throw Error(ErrorCode::bad_file, "too few series of molecules to fit and to hold some out",
                request.input.string());
  const Stopwatch watch;
  const std::vector<double> trees = score_by_fingerprints(known, others, request.pool->threads());
  const double fit_time = watch.seconds();
  const auto labels = std::make_unique<bool[]>(others.size());
  for (std::size_t i = 0; i < others.size(); ++i) labels[i] = others[i]->active;
  const std::span<const bool> active(labels.get(), others.size());
  Report report;
  TextTable table({"method", "ROC AUC", "average precision"});
  append(report, table, "ridge on element counts", "floor_", score_by_elements(known, others), active);
  append(report, table, "boosted trees on fingerprints", "", trees, active);
  report.metrics.push_back({"fit_time", fit_time, "s"});
  report.text = table.to_string();
  if (request.output.empty()) return report;
  data::CsvWriter file(request.output, {"smiles", "active", "score"});
  for (std::size_t i = 0; i < places.size(); ++i) {
    file.cell(all.smiles[places[i]]).cell(labels[i] ? "1" : "0").cell(trees[i]);
    file.end_row();
  }
  file.close();
  return report;
}

}  // namespace

bool is_in_fold(const std::string& scaffold, int fold) { return fold_of(scaffold, activity_folds) == fold; }

bool read_label(const MoleculeRow& row) {
  if (row.label != 0 && row.label != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("'active' is {}, not 0 or 1", row.label));
  return row.label == 1;
}

std::vector<double> score_by_elements(const Molecules& known, const Molecules& others) {
  constexpr double strength = 1e-6;
  const std::vector<double> labels = labels_of(known);
  const LinearModel model = fit_ridge(
      element_counts(known),
      Eigen::Map<const Eigen::VectorXd>(labels.data(), static_cast<Eigen::Index>(labels.size())), strength);
  const Eigen::VectorXd scores = model.predict_all(element_counts(others));
  return {scores.begin(), scores.end()};
}

std::vector<double> score_by_fingerprints(const Molecules& known, const Molecules& others, int threads) {
  return fit_trees(fingerprints(known), labels_of(known), fingerprints(others), {.threads = threads});
}

Entry gin_baseline() {
  return {"gin",
          "boosted trees on circular fingerprints; ridge on element counts",
          {{"fold", "1", "which fifth of the series of molecules is held out, 1 to 5"}},
          run};
}

}  // namespace superstep::baseline
