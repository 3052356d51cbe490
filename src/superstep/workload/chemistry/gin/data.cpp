// Molecules that are active or not: a table of SMILES and labels, or generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/chemistry/activity.h"
#include "superstep/baseline/in_file.h"
#include "superstep/baseline/ranking.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/scaffold.h"
#include "superstep/physics/chemistry/smiles.h"
#include "superstep/physics/row_writer.h"
#include "superstep/workload/chemistry/gin/gin.h"
#include "superstep/workload/metrics.h"

namespace superstep::workload {
namespace {

const RowSource row_source{.generator = "gin",
                           .columns = baseline::activity_columns,
                           .generated = 20000,
                           .thing = "molecule",
                           .label = "label"};

AssayedSample read_molecule(const baseline::MoleculeRow& row, std::size_t number, bool labelled) {
  try {
    AssayedSample read;
    read.smiles = row.smiles, read.place = row.place, read.row = number, read.exact = row.exact;
    read.molecule = data::parse_smiles(row.smiles);
    if (read.molecule.atom_count() == 0) throw Error(ErrorCode::invalid_argument, "a molecule without atoms");
    read.scaffold = data::scaffold_smiles(read.molecule);
    if (labelled) read.label = baseline::read_label(row) ? 1 : 0;
    return read;
  } catch (const Error& error) {
    throw baseline::in_file(error, row.place);
  }
}

bool is_active(const MoleculeSample& sample) { return sample.label == 1; }

using Assayed = std::vector<const baseline::AssayedMolecule*>;

// What is measured by ranks: a span of bool wants memory of its own.
class Labels {
 public:
  explicit Labels(std::span<const MoleculeSample* const> chosen)
      : count_(chosen.size()), active_(std::make_unique<bool[]>(chosen.size())) {
    for (std::size_t i = 0; i < count_; ++i) active_[i] = is_active(*chosen[i]);
  }
  std::span<const bool> get() const { return {active_.get(), count_}; }

 private:
  std::size_t count_;
  std::unique_ptr<bool[]> active_;
};

// The mean of log(1 + e^z) - y z.
double cross_entropy(std::span<const double> odds, std::span<const bool> active) {
  double sum = 0;
  for (std::size_t i = 0; i < odds.size(); ++i)
    sum += std::max(odds[i], 0.0) + std::log1p(std::exp(-std::abs(odds[i]))) - (active[i] ? odds[i] : 0);
  return sum / static_cast<double>(odds.size());
}

class GinTask : public MoleculeTask {
 public:
  // The first `training` molecules are learnt from.
  GinTask(std::vector<AssayedSample> molecules, std::size_t training, const PackCapacity& pack,
          const TaskSettings& settings)
      : MoleculeTask({.things = "molecules"}, rooms_of(molecules, pack, pack.nodes), training, pack,
                     settings),
        molecules_(std::move(molecules)) {}

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const MoleculeAnswers all = answers(indices, outputs.first(1));
    const Labels labels(all.samples);
    return {quality_metric("roc_auc", baseline::area_under_roc(all.found, labels.get())),
            quality_metric("average_precision", baseline::average_precision(all.found, labels.get())),
            quality_metric("cross_entropy", cross_entropy(all.found, labels.get()))};
  }

  double reference_seconds() const override { return 20; }

  References references(std::span<const std::int64_t> indices, ThreadPool& pool) const override {
    const std::vector<std::size_t> judged = numbers_in(indices);
    if (judged.empty() || training_molecules() == 0 || !has_labels()) return {};
    std::vector<baseline::AssayedMolecule> all;
    for (const AssayedSample& each : molecules_)
      all.push_back({each.molecule, each.scaffold, is_active(each)});
    Assayed known, others;
    for (std::size_t i = 0; i < training_molecules(); ++i) known.push_back(&all[i]);
    std::vector<const MoleculeSample*> samples;
    std::vector<double> exact;
    for (const std::size_t i : judged) {
      others.push_back(&all[i]), samples.push_back(&molecules_[i]);
      exact.push_back(molecules_[i].exact);
    }
    const Labels labels(samples);
    const auto area = [&](const std::vector<double>& scores) {
      return baseline::area_under_roc(scores, labels.get());
    };
    References found;
    found.floor = Reference{"ridge on element counts", area(baseline::score_by_elements(known, others))};
    found.conventional = Reference{"boosted trees on fingerprints",
                                   area(baseline::score_by_fingerprints(known, others, pool.threads()))};
    if (std::ranges::none_of(exact, [](double value) { return std::isnan(value); }))
      found.limit = Reference{"the noise of the assay", area(exact)};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    return present_activity(answers(found.indices, found.outputs), page);
  }

 private:
  const MoleculeSample& sample(std::size_t number) const override { return molecules_[number]; }

  std::vector<std::string> columns() const override {
    std::vector<std::string> header{"smiles", "probability"};
    if (has_labels()) header.emplace_back("active");
    return header;
  }
  void write_cells(data::CsvWriter& table, std::size_t number, double found) const override {
    table.cell(sample(number).smiles).cell(data::number_text(static_cast<float>(probability_of(found))));
    if (has_labels()) table.cell(is_active(molecules_[number]) ? "1" : "0");
  }

  std::vector<AssayedSample> molecules_;
};

}  // namespace

double probability_of(double log_odds) { return 1 / (1 + std::exp(-log_odds)); }

std::unique_ptr<Task> open_molecules(const TaskSettings& settings, const Options& model) {
  const std::vector<baseline::MoleculeRow> rows = read_rows(row_source, settings);
  const bool labelled = any_labelled(rows);
  std::vector<AssayedSample> all;
  for (const baseline::MoleculeRow& row : rows) all.push_back(read_molecule(row, all.size(), labelled));
  const int folds = settings.folds > 0 ? settings.folds : baseline::activity_folds;
  const int fold =
      settings.folds > 0 ? settings.fold - 1 : static_cast<int>(model.integer("fold", 1, folds)) - 1;
  const auto is_known = [&](const AssayedSample& each) {
    return labelled && baseline::fold_of(each.scaffold, folds) != fold;
  };
  const std::size_t training = all.size() - std::ranges::stable_partition(all, is_known).size();
  return std::make_unique<GinTask>(std::move(all), training, gin_sizes(model).pack, settings);
}

}  // namespace superstep::workload
