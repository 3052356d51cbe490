// Polymers in packs: a table of SMILES and temperatures, or generated ones.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/physics/chemistry/molecule_features.h"
#include "superstep/physics/row_writer.h"
#include "superstep/workload/chemistry/domain.h"
#include "superstep/workload/chemistry/pack_writer.h"
#include "superstep/workload/chemistry/polymer/polymer_data.h"
#include "superstep/workload/generated.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/packed_samples.h"

namespace superstep::workload {
namespace {

constexpr int folds = 5;

GraphSize size_of(const Polymer& polymer) {
  return {polymer.molecule.atom_count(), 2 * polymer.molecule.bond_count()};
}

std::vector<GraphSize> sizes_of(std::span<const Polymer> polymers, const PackCapacity& capacity) {
  std::vector<GraphSize> sizes;
  for (const Polymer& polymer : polymers) {
    const GraphSize size = size_of(polymer);
    if (size.nodes > capacity.nodes || size.edges > capacity.edges)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("has {} atoms and {} bonds, a pack has room for {} and {}", size.nodes,
                              size.edges / 2, capacity.nodes, capacity.edges / 2),
                  polymer.smiles, "build the model with more --set atoms=N and --set edges=N");
    sizes.push_back(size);
  }
  return sizes;
}

// Samples are packs: those of the polymers that training learns from, then those of the others.
class PolymerTask : public Task {
 public:
  // The first `training` polymers are learnt from.
  PolymerTask(Polymers data, std::size_t training, const PackCapacity& capacity, bool with_bonds,
              std::uint64_t seed, std::string source)
      : data_(std::move(data)),
        training_(training),
        packs_(sizes_of(data_.polymers, capacity), training, capacity, seed),
        with_bonds_(with_bonds),
        source_(std::move(source)) {}

  std::int64_t size() const override { return packs_.size(); }
  std::int64_t training_count() const override { return packs_.training_count(); }
  bool has_labels() const override { return data_.labelled; }

  void fill(std::span<const std::int64_t> indices, std::uint64_t epoch, bool augment,
            std::span<Tensor> tensors) const override {
    const std::size_t inputs = with_bonds_ ? 4 : 3;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const std::vector<std::size_t> polymers =
          augment ? packs_.shuffled(indices[row], epoch) : packs_.graphs(indices[row]);
      PackWriter pack(tensors, row, with_bonds_);
      for (const std::size_t polymer : polymers) pack.add(data_.polymers[polymer].molecule);
      if (tensors.size() > inputs) fill_targets(polymers, row, tensors[inputs], tensors[inputs + 1]);
    }
  }

  void fill_inputs(std::span<const std::int64_t> indices, std::span<Tensor> inputs,
                   ThreadPool&) const override {
    fill(indices, 0, false, inputs);
  }

  std::vector<Metric> quality(std::span<const std::int64_t> indices,
                              std::span<const Tensor> outputs) const override {
    const PolymerPredictions all = predictions(indices, outputs.first(1));
    const baseline::RegressionScore found = baseline::score(all.measured, all.found);
    return {quality_metric("r2", found.r2), quality_metric("mae", found.mae, "K"),
            quality_metric("rmse", found.rmse, "K")};
  }

  double reference_seconds() const override { return 2; }

  References references(std::span<const std::int64_t> indices, ThreadPool&) const override {
    std::vector<std::size_t> judged;
    for (const std::int64_t pack : indices)
      std::ranges::copy(packs_.graphs(pack), std::back_inserter(judged));
    if (judged.empty() || training_ == 0 || !has_labels()) return {};
    std::vector<double> measured, exact;
    for (const std::size_t i : judged)
      measured.push_back(data_.polymers[i].kelvin), exact.push_back(data_.polymers[i].exact);
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
    return present_polymers(predictions(found.indices, found.outputs), page);
  }

  // A row a polymer, in the order in which they came.
  bool has_table() const override { return true; }
  void write_table(const std::filesystem::path& path, std::span<const Tensor> outputs) const override {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    const PolymerPredictions found = predictions(all, outputs.first(1));
    std::vector<std::size_t> order(found.samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t i) {
      return data_.polymers[static_cast<std::size_t>(found.samples[i])].row;
    });
    std::vector<std::string> header{"smiles", "Tg_K"};
    if (has_labels()) header.push_back("measured_K");
    data::CsvWriter table(path, header);
    for (const std::size_t i : order) {
      table.cell(found.smiles[i]).cell(data::number_text(static_cast<float>(found.found[i])));
      if (has_labels()) table.cell(found.measured[i]);
      table.end_row();
    }
    table.close();
  }

  bool knows_domain() const override { return true; }
  std::vector<std::string> outside(const Task& training) const override {
    const auto* other = dynamic_cast<const PolymerTask*>(&training);
    if (!other) return {};
    Domain domain;
    for (const Polymer& known : std::span(other->data_.polymers).first(other->training_))
      domain.learn(known.molecule);
    std::vector<std::string> notes;
    for (const Polymer& polymer : data_.polymers)
      if (std::string words = domain.outside(polymer.molecule); !words.empty())
        notes.push_back(
            fmt::format("{}: '{}' is unlike what was learnt from: {}", polymer.place, polymer.smiles, words));
    return notes;
  }

  nlohmann::json describe() const override {
    nlohmann::json about{{"source", source_},
                         {"samples", size()},
                         {"training", training_count()},
                         {"polymers", data_.polymers.size()},
                         {"training_polymers", training_},
                         {"rows", data_.rows},
                         {"left_out", data_.left_out}};
    about["packing"] = packs_.describe("polymers", "atoms", "edges");
    return about;
  }

 private:
  void fill_targets(const std::vector<std::size_t>& polymers, std::size_t row, Tensor& measured,
                    Tensor& weight) const {
    const auto places = static_cast<std::size_t>(measured.shape()[1]);
    const auto kelvin = measured.as<float>().subspan(row * places, places),
               weights = weight.as<float>().subspan(row * places, places);
    std::ranges::fill(kelvin, 0.0f);
    std::ranges::fill(weights, 0.0f);
    for (std::size_t i = 0; i < polymers.size(); ++i) {
      kelvin[i] = static_cast<float>(data_.polymers[polymers[i]].kelvin);
      weights[i] = static_cast<float>(packs_.places_a_graph());
    }
  }

  // `outputs`: Tg_K, and the contributions of atoms where they are wanted.
  PolymerPredictions predictions(std::span<const std::int64_t> indices,
                                 std::span<const Tensor> outputs) const {
    PolymerPredictions all;
    for (std::size_t row = 0; row < indices.size(); ++row) {
      auto place = static_cast<std::int64_t>(row) * outputs[0].shape()[1];
      auto atom = outputs.size() > 1 ? static_cast<std::int64_t>(row) * outputs[1].shape()[1] : 0;
      for (const std::size_t i : packs_.graphs(indices[row])) {
        const Polymer& polymer = data_.polymers[i];
        all.smiles.push_back(polymer.smiles);
        all.samples.push_back(static_cast<std::int64_t>(i));
        all.measured.push_back(polymer.kelvin);
        all.found.push_back(outputs[0].at(place++));
        if (outputs.size() < 2) continue;
        std::vector<double>& shares = all.shares.emplace_back();
        for (int k = 0; k < polymer.molecule.atom_count(); ++k) shares.push_back(outputs[1].at(atom++));
      }
    }
    return all;
  }

  // Nothing where one of them is no repeat unit of a chain: its groups cannot be counted.
  struct Groups {
    std::vector<baseline::MeasuredPolymer> known, judged;
  };
  std::optional<Groups> groups_of(const std::vector<std::size_t>& judged) const {
    const auto counted = [&](std::size_t i) {
      return baseline::measured_polymer(data_.polymers[i].smiles, data_.polymers[i].kelvin);
    };
    Groups groups;
    try {
      for (std::size_t i = 0; i < training_; ++i) groups.known.push_back(counted(i));
      for (const std::size_t i : judged) groups.judged.push_back(counted(i));
    } catch (const Error&) {
      return std::nullopt;
    }
    return groups;
  }

  Polymers data_;
  std::size_t training_;
  PackedSamples packs_;
  bool with_bonds_;
  std::string source_;
};

}  // namespace

std::unique_ptr<Task> open_polymers(const PolymerData& data, const TaskSettings& settings,
                                    const Options& model) {
  Polymers all = read_polymers(data, settings);
  const std::string source = settings.data.empty() ? generated_source(settings) : settings.data.string();
  std::size_t training = 0;
  if (all.labelled) {
    const auto held_out = model.integer("fold", 1, folds) - 1;
    const auto is_known = [&](const Polymer& polymer) {
      return baseline::fold_of(polymer.canonical, folds) != held_out;
    };
    training = all.polymers.size() - std::ranges::stable_partition(all.polymers, is_known).size();
  }
  return std::make_unique<PolymerTask>(std::move(all), training, polymer_sizes(model).pack, data.with_bonds,
                                       settings.seed, source);
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
