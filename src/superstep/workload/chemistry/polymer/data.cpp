// Polymers and their temperatures: a table of SMILES, or generated ones.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/physics/row_writer.h"
#include "superstep/workload/chemistry/polymer/polymer_data.h"
#include "superstep/workload/metrics.h"

namespace superstep::workload {
namespace {

constexpr int folds = 5;

class PolymerTask : public MoleculeTask {
 public:
  // The first `training` polymers are learnt from.
  PolymerTask(Polymers data, std::size_t training, const PackCapacity& pack, bool with_bonds,
              const TaskSettings& settings)
      : MoleculeTask({.things = "polymers", .with_bonds = with_bonds, .inputs = with_bonds ? 4u : 3u},
                     rooms_of(data.polymers, pack, pack.nodes), training, pack, settings),
        data_(std::move(data)) {}

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const MoleculeAnswers all = answers(indices, outputs.first(1));
    const baseline::RegressionScore found = baseline::score(all.labels(), all.found);
    return {quality_metric("r2", found.r2), quality_metric("mae", found.mae, "K"),
            quality_metric("rmse", found.rmse, "K")};
  }

  double reference_seconds() const override { return 2; }

  References references(std::span<const std::int64_t> indices, ThreadPool&) const override {
    const std::vector<std::size_t> judged = numbers_in(indices);
    if (judged.empty() || training_molecules() == 0 || !has_labels()) return {};
    std::vector<double> measured, exact;
    for (const std::size_t i : judged)
      measured.push_back(data_.polymers[i].label), exact.push_back(data_.polymers[i].exact);
    const auto r2 = [&](const std::vector<double>& found) { return baseline::score(measured, found).r2; };
    References found;
    if (const auto groups = groups_of(judged)) {
      const auto contributions = baseline::fit_contributions(groups->known);
      std::vector<double> fitted;
      for (const auto& polymer : groups->judged)
        fitted.push_back(baseline::predict_kelvin(polymer, contributions));
      found.floor = Reference{"ridge on element counts",
                              r2(baseline::predict_by_elements(groups->known, groups->judged))};
      found.conventional = Reference{"fitted group contributions", r2(fitted)};
    }
    if (std::ranges::none_of(exact, [](double kelvin) { return std::isnan(kelvin); }))
      found.limit = Reference{"the noise of the measurements", r2(exact)};
    return found;
  }

  std::string present(const Predictions& found, ThreadPool&, page::Page& page) const override {
    return present_polymers(answers(found.indices, found.outputs), page);
  }

  nlohmann::json describe() const override {
    nlohmann::json about = MoleculeTask::describe();
    about["rows"] = data_.rows;
    about["left_out"] = data_.left_out;
    return about;
  }

 private:
  const MoleculeSample& sample(std::size_t number) const override { return data_.polymers[number]; }

  std::vector<std::string> columns() const override {
    std::vector<std::string> header{"smiles", "Tg_K"};
    if (has_labels()) header.emplace_back("measured_K");
    return header;
  }
  void write_cells(data::CsvWriter& table, std::size_t number, double found) const override {
    table.cell(sample(number).smiles).cell(data::number_text(static_cast<float>(found)));
    if (has_labels()) table.cell(sample(number).label);
  }

  // Nothing where one of them is no repeat unit of a chain: its groups cannot be counted.
  struct Groups {
    std::vector<baseline::MeasuredPolymer> known, judged;
  };
  std::optional<Groups> groups_of(const std::vector<std::size_t>& judged) const {
    const auto counted = [&](std::size_t i) {
      return baseline::measured_polymer(data_.polymers[i].smiles, data_.polymers[i].label);
    };
    Groups groups;
    try {
      for (std::size_t i = 0; i < training_molecules(); ++i) groups.known.push_back(counted(i));
      for (const std::size_t i : judged) groups.judged.push_back(counted(i));
    } catch (const Error&) {
      return std::nullopt;
    }
    return groups;
  }

  Polymers data_;
};

}  // namespace

std::unique_ptr<Task> open_polymers(const PolymerData& data, const TaskSettings& settings,
                                    const Options& model) {
  Polymers all = read_polymers(data, settings);
  std::size_t training = 0;
  if (all.labelled) {
    const int parts = settings.folds > 0 ? settings.folds : folds;
    const auto held_out = settings.folds > 0 ? settings.fold - 1 : model.integer("fold", 1, folds) - 1;
    const auto is_known = [&](const Polymer& polymer) {
      return baseline::fold_of(polymer.canonical, parts) != held_out;
    };
    training = all.polymers.size() - std::ranges::stable_partition(all.polymers, is_known).size();
  }
  return std::make_unique<PolymerTask>(std::move(all), training, polymer_sizes(model).pack, data.with_bonds,
                                       settings);
}

std::map<std::string, Tensor> fitted_polymer_mean(const Task& task, const Options& model, ThreadPool&) {
  const PackCapacity pack = polymer_sizes(model).pack;
  const bool with_bonds = !model.all().contains("self-loops");
  std::vector<Tensor> tensors{Tensor(ElementType::f32, {1, pack.nodes, data::atom_feature_count}),
                              Tensor(ElementType::i64, {1, 2, pack.edges})};
  if (with_bonds) tensors.emplace_back(ElementType::f32, Shape{1, pack.edges, data::bond_feature_count});
  tensors.emplace_back(ElementType::i64, Shape{1, pack.nodes});
  for (int target = 0; target < 2; ++target) tensors.emplace_back(ElementType::f32, Shape{1, pack.graphs});
  const Tensor& measured = tensors[tensors.size() - 2];
  double sum = 0, count = 0;
  for (std::int64_t sample = 0; sample < task.training_count(); ++sample) {
    task.fill(std::span(&sample, 1), 0, false, tensors);
    for (std::int64_t place = 0; place < pack.graphs; ++place)
      if (const double kelvin = measured.at(place); kelvin > 0) sum += std::log(kelvin), count += 1;
  }
  return {{last_bias, Tensor::full(ElementType::f32, {1}, sum / std::max(1.0, count) / log_kelvin_unit)}};
}

}  // namespace superstep::workload
